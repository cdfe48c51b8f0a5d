// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"iter"

	"rollset.dev/rollset/internal/model/inplace"
)

// FindSteady marks the steady replicas, and lists the others. It is called once, when all else is known about the replicas.
// Planners that look for what is wrong read the others only, because almost all pods of a large set are steady.
func (s *Set) FindSteady() {
	s.steady, s.unsteady = map[string]int{}, []*Replica{}
	var last string // most have the same revision
	var usable bool
	run := 0
	for i := range s.Replicas {
		r := &s.Replicas[i]
		if i == 0 || r.Revision != last {
			s.addSteady(last, run)
			last, usable, run = r.Revision, s.Known[r.Revision].Template != nil, 0
		}
		if r.Steady = usable && r.uneventful() && !s.Condemned(r); r.Steady {
			run++
		} else {
			s.unsteady = append(s.unsteady, r)
		}
	}
	s.addSteady(last, run)
}

// addSteady counts n steady replicas of a revision.
func (p *Pods) addSteady(revision string, n int) {
	if n > 0 {
		p.steady[revision] += n
	}
}

// uneventful reports whether a replica's pod is available and nothing else is to be said about it.
func (r *Replica) uneventful() bool {
	return r.Active() && r.Ready && r.Available && !r.Updating && !r.Specified && !r.Surge && !r.MadeForSurge && !r.Replaced && r.State == "" &&
		r.Leaving == "" && !r.Withdrawn && r.Hook == "" && r.Passed.Hook == "" && r.Gate.Passable() &&
		(r.InPlace.Empty() || r.Progress == inplace.Progress{} && r.ProofWait == 0 && r.Unproven == "" && r.Infeasible == "")
}

// Unsteady returns the replicas that are not steady, in identity order.
func (p *Pods) Unsteady() iter.Seq[*Replica] {
	return func(yield func(*Replica) bool) {
		if p.unsteady == nil {
			p.searchUnsteady(yield)
			return
		}
		for _, r := range p.unsteady {
			if !yield(r) {
				return
			}
		}
	}
}

// searchUnsteady yields the unsteady replicas of a set that has no list of them.
func (p *Pods) searchUnsteady(yield func(*Replica) bool) {
	for i := range p.Replicas {
		if r := &p.Replicas[i]; !r.Steady && !yield(r) {
			return
		}
	}
}

// CountSteady returns how many replicas are steady, by the revision of their pods. The map is shared.
func (p *Pods) CountSteady() map[string]int {
	if p.unsteady != nil {
		return p.steady
	}
	steady := map[string]int{}
	for i := range p.Replicas {
		if r := &p.Replicas[i]; r.Steady {
			steady[r.Revision]++
		}
	}
	return steady
}

// allSteady returns how many replicas are steady.
func (p *Pods) allSteady() (n int) {
	for _, at := range p.CountSteady() {
		n += at
	}
	return n
}
