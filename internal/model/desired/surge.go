// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strconv"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// surge sets how much surge a set with ordinals may have, and sends the surge pods that are no longer needed or that a user named.
// A surge pod serves until enough others do.
func (s *State) surge(snap *snapshot.Set) {
	s.lacking = obtainable(snap, at(snap, snap.Limits.Replicas-1))
	if snap.Limits.MaxSurge > 0 {
		s.Surge = min(snap.Limits.MaxSurge, snap.Limits.Replicas, disturbed(snap))
	}
	var extra []*snapshot.Replica
	for r := range snap.Unsteady() {
		if r.Surge && r.Active() && (!s.isSurgePlace(snap, r.Ordinal) || s.Spent(snap, r)) {
			extra = append(extra, r)
		}
	}
	slices.Reverse(extra)
	v := newChoice(snap, s)
	v.take(extra, len(extra))
}

// disturbed returns how many members of a set with ordinals are still to be moved or replaced, and are missed meanwhile.
func disturbed(snap *snapshot.Set) (n int) {
	type move struct{ from, to string }
	moves := map[move]int{}
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		k, used := snap.InUse(r.Ordinal)
		if !used || !r.Active() {
			continue
		}
		switch to := target(snap, r, k); {
		case isNamed(snap, r):
			n++
		case to == r.Revision && isDoubtful(snap, r):
			n++
		case r.ToReplace(), to == r.Revision, snap.RefusesMoves(to), snap.Spec.UpdatePolicy() == v1beta1.InPlaceOnlyPod && r.Broken() && !r.Updating:
		default:
			moves[move{r.Revision, to}]++
		}
	}
	for m, pods := range moves {
		if missed(snap, m.from, m.to) {
			n += pods
		}
	}
	return n
}

// isSurgePlace reports whether surge of a set with ordinals may have an ordinal now: it is one of the next above those in use.
func (s *State) isSurgePlace(snap *snapshot.Set, ordinal int) bool {
	k, usable := snap.Ordinals.Rank(ordinal)
	return usable && k >= snap.Limits.Replicas && k < snap.Limits.Replicas+s.Surge
}

// findSurgePlaces records the places of surge in a set with ordinals, as many as the guard allows. Members come first: while one has no
// pod, or one that is going, surge could take the room of its successor. The name of a surge pod that is going is not free, and
// no other name takes its place.
func (s *State) findSurgePlaces(snap *snapshot.Set) {
	if s.Surge == 0 || !complete(snap, s.Missing) {
		return
	}
	taken, surging := aboveRange(snap)
	n := min(s.Surge-surging, Batch, s.moreSurge)
	for k := snap.Limits.Replicas; k < snap.Limits.Replicas+s.Surge && n > 0; k++ {
		ordinal := snap.Ordinals.At(k)
		if ordinal < 0 { // no higher one is usable
			return
		}
		if taken[ordinal] {
			continue
		}
		revision := comesBackAt(snap, s.lacking)
		if snap.Paused() {
			revision = named(s.Candidates, surging, revision)
		}
		s.Places = append(s.Places, Place{ID: strconv.Itoa(ordinal), Ordinal: ordinal, Revision: revision, Wanted: revision, Surge: true})
		surging++
		n--
	}
}

// aboveRange returns the ordinals of all pods that may be out of range, and how many of these are active surge.
func aboveRange(snap *snapshot.Set) (taken map[int]bool, surging int) {
	taken = map[int]bool{}
	for r := range snap.Unsteady() {
		if r.Pod != nil {
			taken[r.Ordinal] = true
		}
		if r.Surge && r.Active() {
			surging++
		}
	}
	return taken, surging
}

// complete reports whether each member of a set with ordinals has an active pod, given how many have none.
func complete(snap *snapshot.Set, missing int) bool {
	for r := range snap.Unsteady() {
		if r.Pod != nil && !r.Active() && !snap.Condemned(r) {
			return false
		}
	}
	return missing == 0
}

// Surging counts the surge pods that stay, and those of them that are available.
func (s *State) Surging(snap *snapshot.Set) (pods, available int) {
	for r := range snap.Unsteady() {
		switch {
		case !r.Surge || !r.Active() || s.Goes(r):
			continue
		case r.Available:
			available++
		}
		pods++
	}
	return pods, available
}
