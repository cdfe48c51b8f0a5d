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
	s := &State{Excess: map[string]int{}}
	taken := make(map[int]bool, len(o.Replicas))
	inRange := 0
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if r.Pod == nil {
			continue
		}
		k, used := o.InUse(r.Ordinal)
		if !used {
			if r.Active() {
				s.Condemned = append(s.Condemned, r)
			}
			continue
		}
		inRange++
		taken[k] = true
		if r.Active() {
			s.judge(o, r, k)
		}
	}
	slices.SortFunc(s.Condemned, func(a, b *snapshot.Replica) int { return b.Ordinal - a.Ordinal })
	s.Surplus = len(s.Condemned)
	s.Missing = o.Limits.Replicas - inRange
	for k := 0; len(s.Places) < min(s.Missing, Batch); k++ {
		ordinal := o.Ordinals.At(k)
		if ordinal < 0 { // more replicas than there are ordinals
			break
		}
		if !taken[k] {
			place := Place{ID: strconv.Itoa(ordinal), Ordinal: ordinal, Revision: comesBackAt(o, at(o, k))}
			if revision, ok := o.Replacing[place.ID]; ok {
				place.Revision = revision
			}
			s.Places = append(s.Places, place)
		}
	}
	return s
}

// judge records an active pod that is not the one wanted at the k-th place, or that is to be replaced.
func (s *State) judge(o *snapshot.Set, r *snapshot.Replica, k int) {
	switch to := target(o, r, k); {
	case r.ToReplace() && o.Paused() && replaceable(o, r):
		s.Candidates = append(s.Candidates, Candidate{Replica: r, To: r.Revision, Named: true})
	case r.ToReplace() && replaceable(o, r):
		s.Candidates = append(s.Candidates, Candidate{Replica: r, To: comesBackAt(o, at(o, k)), Named: true})
	case to != r.Revision:
		s.Excess[r.Revision]++
		s.Candidates = append(s.Candidates, Candidate{Replica: r, To: to})
	}
}
