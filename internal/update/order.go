// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"

	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// candidate is a move with its urgency. Loss is filled only if it decides.
type candidate struct {
	*desired.Candidate

	class class
	loss  desired.Loss
}

// inOrder sorts the candidates by urgency. Within a class the user's priorities decide, then the order of the identity.
// Finally, pods that share a label are spread. Priorities do not apply to broken pods.
func inOrder(snap *snapshot.Set, moves []desired.Candidate, d *domains) []*candidate {
	if len(moves) == 0 {
		return nil
	}
	all := make([]candidate, len(moves))
	sorted := make([]*candidate, len(moves))
	for i := range moves {
		m := &moves[i]
		all[i] = candidate{Candidate: m, class: classOf(snap, m.Replica, d.rank(m.Replica))}
		sorted[i] = &all[i]
	}
	if !snap.Ordinal() {
		losses := desired.Losses(snap)
		for _, c := range sorted {
			c.loss = losses(c.Replica)
		}
	}
	slices.SortFunc(sorted, func(a, b *candidate) int {
		if c := slices.Compare(a.class[:], b.class[:]); c != 0 {
			return c
		}
		if snap.Priorities.Any() {
			if c := prioritizedFirst(snap.Priorities, a.Replica, b.Replica); c != 0 {
				return c
			}
		}
		return byIdentity(snap, a, b)
	})
	scatterClasses(sorted, snap.Priorities.Scatter)
	return sorted
}

// class is the urgency of a move, the smaller the sooner: of pods that are out of service anyway, of their failure domain, and
// within it.
type class [3]int32

// classOf returns the urgency of moving a pod. First come pods that may have been deleted, because no other pod may go in their
// place. Then come pods that are already out of service for it, then broken pods, then healthy ones, those of each failure domain
// together. Among them, strays come first, so that at most two revisions remain; then pods to be replaced; then those not yet
// available. Pods whose move was refused come after the others: a hook would prepare them without effect again and again.
func classOf(snap *snapshot.Set, r *snapshot.Replica, domain int) class {
	stray := r.Revision != snap.Current.Name && r.Revision != snap.Update.Name
	return class{inBits(snap.MayBeDeleted(r.Pod), r.Updating, r.Broken()), int32(domain), inBits(!snap.WasRefused(r.Pod), stray, r.ToReplace(), !r.Available)}
}

// inBits returns a number that is the smaller the sooner its conditions are true.
func inBits(conditions ...bool) (n int32) {
	for _, sooner := range conditions {
		n <<= 1
		if !sooner {
			n++
		}
	}
	return n
}

// byIdentity puts the highest ordinal first, or the least useful pod first. Broken pods of an OrderedReady set start from
// the lowest, because their successors are created in that order.
func byIdentity(snap *snapshot.Set, a, b *candidate) int {
	switch {
	case !snap.Ordinal():
		return desired.LeastFirst(&a.loss, &b.loss)
	case snap.OrderedReady() && a.Replica.Broken() && b.Replica.Broken():
		return desired.HighestFirst(b.Replica, a.Replica)
	default:
		return desired.HighestFirst(a.Replica, b.Replica)
	}
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
