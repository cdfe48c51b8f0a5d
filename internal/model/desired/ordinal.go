// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strconv"

	"rollset.dev/rollset/internal/model/snapshot"
)

// ordinal returns the State of a set with ordinals. Its cost grows with the number of existing pods, not with spec.replicas.
func ordinal(snap *snapshot.Set) *State {
	s := &State{Excess: map[string]int{}, Available: snap.Available()}
	taken := make(map[int]bool, len(snap.Replicas))
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		k, used := snap.InUse(r.Ordinal)
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
	s.surge(snap)
	slices.SortFunc(s.Going, func(a, b *snapshot.Replica) int { return b.Ordinal - a.Ordinal })
	s.watch(snap)
	for i := range snap.Replicas {
		if r := &snap.Replicas[i]; r.Active() && !r.Surge && !s.Goes(r) {
			s.judge(snap, r)
		}
	}
	s.findPlaces(snap, taken)
	s.findSurgePlaces(snap)
	return s
}

// judge records a pod that is not the one wanted in its place, or that is to be replaced.
func (s *State) judge(snap *snapshot.Set, r *snapshot.Replica) {
	k, _ := snap.InUse(r.Ordinal)
	switch to := target(snap, r, k); {
	case r.ToReplace() && snap.Paused() && replaceable(snap, r):
		s.Candidates = append(s.Candidates, Candidate{Replica: r, To: r.Revision, Named: true})
	case r.ToReplace() && replaceable(snap, r):
		s.Candidates = append(s.Candidates, Candidate{Replica: r, To: s.guardedAt(snap, at(snap, k)), Named: true, Later: at(snap, k) != r.Revision})
	case to != r.Revision:
		s.Excess[r.Revision]++
		s.Candidates = append(s.Candidates, Candidate{Replica: r, To: to})
	}
}

// findPlaces records the places without a pod, given those that have one.
func (s *State) findPlaces(snap *snapshot.Set, taken map[int]bool) {
	s.Missing = snap.Limits.Replicas
	for _, has := range taken {
		if has {
			s.Missing--
		}
	}
	for k := 0; len(s.Places) < min(s.Missing, Batch); k++ {
		ordinal := snap.Ordinals.At(k)
		if ordinal < 0 { // more replicas than there are ordinals
			break
		}
		if !taken[k] {
			place := Place{ID: strconv.Itoa(ordinal), Ordinal: ordinal, Revision: comesBackAt(snap, at(snap, k))}
			if revision, ok := owed(snap, place.ID); ok {
				place.Revision = revision
			}
			place.Wanted = place.Revision
			s.Places = append(s.Places, place)
		}
	}
	s.admit(snap)
}
