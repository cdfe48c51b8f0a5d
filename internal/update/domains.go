// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"slices"
	"time"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// domains decide which failure domain may lose healthy pods now. It is nil for a set without failure domains. The methods
// answer for one plan.
type domains struct {
	set  *snapshot.Set
	spec *v1alpha1.FailureDomains
	// excess is how many pods of each revision must move. Without any, pods are only replaced because users named them.
	excess map[string]int
	all    map[snapshot.Domain]*domain
	// inTurn are all domains, in the order in which they are disturbed.
	inTurn []*domain
	// busy are the domains with a pod that is not available or is still being changed.
	busy []*domain
	// coming is the name of a pod that was created a moment ago and has no node yet, so that its domain is not known; empty if
	// there is none, or if the scheduler found no node for it. It is waited for until a time.
	coming      string
	comingUntil time.Time
	// atWork is the domain of the first healthy pod that is to be disturbed by this plan; nil until one was judged.
	atWork *domain
}

// domain is what is known of a failure domain.
type domain struct {
	snapshot.Domain

	// rank is its place in the order.
	rank int
	// moved is how many of its pods are at the revision that pods move to, left how many are still to be disturbed.
	moved, left int
	// waits is a pod of it that is not available or is still being changed; nil if there is none.
	waits *snapshot.Replica
	// since is when the last of its other pods became available.
	since time.Time
}

// newDomains returns the failure domains of a set, and what each of them waits for. The moves are those that may be made.
func newDomains(o *snapshot.Set, w *desired.State, moves []desired.Candidate, b *budget) *domains {
	spec := o.Domains()
	if spec == nil {
		return nil
	}
	d := &domains{set: o, spec: spec, excess: w.Excess, all: map[snapshot.Domain]*domain{}}
	var fresh, terminating []*snapshot.Replica
	candidates := moves // in the order of the replicas
	for i := range o.Replicas {
		r := &o.Replicas[i]
		isCandidate := len(candidates) > 0 && candidates[0].Replica == r
		if isCandidate {
			candidates = candidates[1:]
		}
		switch {
		case r.Pod == nil, w.Goes(r), r.Surge && !r.Available, o.Condemned(r):
		case r.Terminating:
			terminating = append(terminating, r)
		case isCandidate && r.Node != "":
			d.of(r).left++
			if !r.Available {
				d.wait(r)
			}
		case isCandidate: // it is replaced wherever others are
		case !r.Available && !r.Finished:
			fresh = append(fresh, r)
		default:
			d.stays(r)
		}
	}
	d.await(fresh, b)
	d.leave(terminating)
	d.sort()
	return d
}

// of returns the domain of a pod.
func (d *domains) of(r *snapshot.Replica) *domain {
	key := snapshot.DomainOf(r.Pod, d.spec.LabelKey)
	found := d.all[key]
	if found == nil {
		found = &domain{Domain: key}
		d.all[key] = found
		d.inTurn = append(d.inTurn, found)
	}
	return found
}

// wait makes a domain wait for a pod of it. A pod without a node is in no domain yet.
func (d *domains) wait(r *snapshot.Replica) {
	if r.Node == "" {
		return
	}
	own := d.of(r)
	if own.waits == nil {
		own.waits = r
		d.busy = append(d.busy, own)
	}
}

// stays counts a pod that is not to be disturbed.
func (d *domains) stays(r *snapshot.Replica) {
	if !r.Available || r.Waiting != "" {
		d.wait(r)
	}
	if d.excess[r.Revision] > 0 || r.Finished {
		return // it did not move
	}
	own := d.of(r)
	if len(d.excess) > 0 {
		own.moved++
	}
	for _, t := range [...]time.Time{r.ReadySince.Add(d.set.MinReady()), podstate.Started(r.Pod)} {
		if t.After(own.since) && !t.After(d.set.Now) {
			own.since = t
		}
	}
}

// await counts the unavailable pods that stay, but not those that are surplus: the newest stand in for pods that are there
// still. Without a node, a pod says only that some domain is not complete, and only for a moment.
func (d *domains) await(fresh []*snapshot.Replica, b *budget) {
	surplus := b.surplus
	if surplus <= len(b.created) {
		for _, name := range b.created[surplus:] {
			d.expect(name, d.set.Now)
		}
		surplus = 0
	} else {
		surplus -= len(b.created)
	}
	if surplus > 0 {
		slices.SortStableFunc(fresh, func(a, b *snapshot.Replica) int { return cmp.Compare(b.Created, a.Created) })
	}
	for _, r := range fresh[min(surplus, len(fresh)):] {
		switch {
		case r.Node != "":
			d.stays(r)
		case !podstate.Unschedulable(r.Pod):
			d.expect(r.Pod.Name, r.Pod.CreationTimestamp.Time)
		}
	}
}

// binds is how long a new pod may take to get a node before others do not wait for it any longer.
const binds = time.Minute

// expect counts a pod that has no node yet.
func (d *domains) expect(pod string, created time.Time) {
	if until := created.Add(binds); until.After(d.set.Now) && until.After(d.comingUntil) {
		d.coming, d.comingUntil = pod, until
	}
}

// leave counts the terminating pods whose successors are not available. Ordinals come back only when they are gone. Of pods
// with random names, as many have no available successor as pods are missing: those that were deleted last.
func (d *domains) leave(terminating []*snapshot.Replica) {
	if !d.set.Ordinal() {
		slices.SortStableFunc(terminating, func(a, b *snapshot.Replica) int {
			return b.Pod.DeletionTimestamp.Compare(a.Pod.DeletionTimestamp.Time)
		})
		missing := max(0, d.set.Limits.Replicas-d.set.Available())
		terminating = terminating[:min(missing, len(terminating))]
	}
	for _, r := range terminating {
		d.wait(r)
	}
}

// sort puts the domains in their order: those that have begun, the furthest first, then the others by name.
func (d *domains) sort() {
	slices.SortFunc(d.inTurn, func(a, b *domain) int {
		return cmp.Or(cmp.Compare(b.begun(), a.begun()), snapshot.CompareDomains(a.Domain, b.Domain))
	})
	for i, own := range d.inTurn {
		own.rank = i
	}
}

// begun returns how many pods of a domain have moved while others have not; 0 if none has, or all have.
func (d *domain) begun() int {
	if d.left == 0 {
		return 0
	}
	return d.moved
}

// rank returns the place of a pod's domain in the order.
func (d *domains) rank(r *snapshot.Replica) int {
	if d == nil || r.OutOfService() {
		return 0
	}
	return d.of(r).rank
}

// refuses reports whether a healthy pod must wait for another domain. The first one that is judged says which domain is at
// work. A pod that is replaced by another of its revision, because it cannot be changed in place, does not wait for its turn.
func (d *domains) refuses(m desired.Candidate) bool {
	if d == nil || m.Replica.OutOfService() {
		return false
	}
	own := d.of(m.Replica)
	if d.atWork == nil && takesTurns(m) {
		d.atWork = own
	}
	return d.obstacle(m, own).kind != nothing
}

// takesTurns reports whether a move waits for the turn of its domain.
func takesTurns(m desired.Candidate) bool { return m.Named || m.To != m.Replica.Revision }

// disturb counts a pod that is disturbed by this plan.
func (d *domains) disturb(r *snapshot.Replica) {
	if d != nil {
		d.wait(r)
	}
}

// hindrance is a kind of obstacle.
type hindrance int

const (
	nothing hindrance = iota
	turn
	unavailable
	arrival
	soak
)

// obstacle is what a domain waits for.
type obstacle struct {
	kind hindrance
	// other is the domain that comes first, or that has the unavailable pod.
	other *domain
	// began is when a soak began.
	began time.Time
}

// obstacle returns what keeps a pod of a domain from being disturbed now.
func (d *domains) obstacle(m desired.Candidate, own *domain) obstacle {
	if takesTurns(m) && d.atWork != own {
		return obstacle{kind: turn, other: d.atWork}
	}
	for _, other := range d.busy {
		if other != own {
			return obstacle{kind: unavailable, other: other}
		}
	}
	if own.moved > 0 || !takesTurns(m) {
		return obstacle{}
	}
	if d.coming != "" {
		return obstacle{kind: arrival}
	}
	if began := d.soaksSince(own); d.set.Now.Before(began.Add(d.soak())) {
		return obstacle{kind: soak, began: began}
	}
	return obstacle{}
}

// soak is the time between two domains.
func (d *domains) soak() time.Duration { return time.Duration(d.spec.SoakSeconds) * time.Second }

// soaksSince returns since when the pods of the other domains have been available, as far as they moved.
func (d *domains) soaksSince(own *domain) (since time.Time) {
	for _, other := range d.inTurn {
		if other != own && other.since.After(since) && (other.moved > 0 || len(d.excess) == 0) {
			since = other.since
		}
	}
	return since
}
