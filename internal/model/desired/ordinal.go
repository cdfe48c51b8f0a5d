// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strconv"

	"rollset.dev/rollset/internal/model/snapshot"
)

// ordinal returns the State of a set with ordinals. Its cost grows with the number of existing pods, not with spec.replicas.
func ordinal(o *snapshot.Set) *State {
	s := &State{Excess: map[string]int{}, Available: o.Available()}
	taken := make(map[int]bool, len(o.Replicas))
	for i := range o.Replicas {
		r := &o.Replicas[i]
		k, used := o.InUse(r.Ordinal)
		switch {
		case r.Pod == nil:
			continue
		case r.Active() && !used && !r.Surge:
			s.send(r)
		}
		taken[k] = taken[k] || used
	}
	for _, r := range s.Going {
		if r.Available {
			s.Available--
		}
	}
	s.surge(o)
	slices.SortFunc(s.Going, func(a, b *snapshot.Replica) int { return b.Ordinal - a.Ordinal })
	s.watch(o)
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Active() && !r.Surge && !s.Goes(r) {
			s.judge(o, r)
		}
	}
	s.findPlaces(o, taken)
	s.findSurgePlaces(o)
	return s
}

// judge records a pod that is not the one wanted in its place, or that is to be replaced.
func (s *State) judge(o *snapshot.Set, r *snapshot.Replica) {
	k, _ := o.InUse(r.Ordinal)
	switch to := target(o, r, k); {
	case r.ToReplace() && o.Paused() && replaceable(o, r):
		s.Candidates = append(s.Candidates, Candidate{Replica: r, To: r.Revision, Named: true})
	case r.ToReplace() && replaceable(o, r):
		s.Candidates = append(s.Candidates, Candidate{Replica: r, To: s.guardedAt(o, at(o, k)), Named: true})
	case to != r.Revision:
		s.Excess[r.Revision]++
		s.Candidates = append(s.Candidates, Candidate{Replica: r, To: to})
	}
}

// findPlaces records the places without a pod, given those that have one.
func (s *State) findPlaces(o *snapshot.Set, taken map[int]bool) {
	s.Missing = o.Limits.Replicas
	for _, has := range taken {
		if has {
			s.Missing--
		}
	}
	for k := 0; len(s.Places) < min(s.Missing, Batch); k++ {
		ordinal := o.Ordinals.At(k)
		if ordinal < 0 { // more replicas than there are ordinals
			break
		}
		if !taken[k] {
			place := Place{ID: strconv.Itoa(ordinal), Ordinal: ordinal, Revision: comesBackAt(o, at(o, k))}
			if revision, ok := o.Replacing[place.ID]; ok && o.Paused() {
				place.Revision = revision
			}
			place.Wanted = place.Revision
			s.Places = append(s.Places, place)
		}
	}
	s.admit(o)
}
