// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package wanted

import (
	"rollset.dev/rollset/internal/identity"
	"rollset.dev/rollset/internal/observed"
)

// random is the State of a set with random names.
func random(o *observed.Set) *State {
	s := &State{Excess: map[string]int{}}
	want := map[string]int{o.Update.Name: o.Limits.Replicas}
	if p := partition(o); p > 0 {
		want = map[string]int{o.Current.Name: p, o.Update.Name: o.Limits.Replicas - p}
	}
	have, live, held := count(o)
	if !Frozen(o) {
		s.countExcess(o, shortages{want: want, have: have})
	}
	wrong := s.findCandidates(o)
	s.Surge = min(o.Limits.MaxSurge, wrong)
	s.Missing = max(0, o.Limits.Replicas-live-held)
	s.Surplus = max(0, live-o.Limits.Replicas-s.Surge)

	room := s.Missing
	if !o.Paused() { // surge made before a pause may stay, none is made during it
		room = max(0, o.Limits.Replicas+s.Surge-live-held)
	}
	s.fill(o, shortages{want: want, have: have}, min(room, Batch))
	return s
}

// count returns the live pods of each revision, all live pods, and the pods that are not live but hold a place: finished
// ones until they are deleted, and terminating ones whose claims their successor is to use.
func count(o *observed.Set) (have map[string]int, live, held int) {
	have = map[string]int{}
	for i := range o.Replicas {
		switch r := &o.Replicas[i]; {
		case r.Live():
			have[r.Revision]++
			live++
		case r.Finished && !r.Terminating, r.Terminating && len(r.Claims) > 0:
			held++
		}
	}
	return have, live, held
}

// countExcess notes how many pods of each revision have to go. Too many pods at the only revision there is are none of
// those: they are surplus, not misplaced.
func (s *State) countExcess(o *observed.Set, pods shortages) {
	for revision, n := range pods.have {
		if !o.Rolling() && revision == o.Update.Name {
			continue
		}
		if excess := n - pods.want[revision]; excess > 0 {
			s.Excess[revision] = excess
		}
	}
}

// findCandidates notes the pods that may have to move and returns how many will have to.
func (s *State) findCandidates(o *observed.Set) (wrong int) {
	for _, n := range s.Excess {
		wrong += n
	}
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !r.Live() {
			continue
		}
		switch {
		case s.Excess[r.Revision] > 0:
			s.Candidates = append(s.Candidates, Move{Replica: r, To: destination(o, r.Revision)})
		case r.Specified && comesBackAt(o, r.Revision) == r.Revision:
			s.Candidates = append(s.Candidates, Move{Replica: r, To: r.Revision})
			wrong++
		}
	}
	return wrong
}

// destination is where the pods go of which a revision has too many. Strays go to the update revision unless all of it
// is given up: which of the two gets how many is settled where pods are created.
func destination(o *observed.Set, from string) string {
	if o.Rejected || from == o.Update.Name {
		return o.Current.Name
	}
	return o.Update.Name
}

// shortages are the pods wanted and had of each revision.
type shortages struct{ want, have map[string]int }

func (s shortages) of(revision string) int { return max(0, s.want[revision]-s.have[revision]) }

// fill names n places: first those at the current revision, which is known to work, then those at the update revision,
// then those of pods that are to be replaced as they are.
func (s *State) fill(o *observed.Set, short shortages, n int) {
	if n <= 0 {
		return
	}
	atCurrent := 0
	if o.Rolling() {
		atCurrent = short.of(o.Current.Name)
	}
	ids := newIDs(o, n)
	for i := range n {
		revision := o.Update.Name
		if i < atCurrent {
			revision = o.Current.Name
		} else if i-atCurrent >= short.of(o.Update.Name) {
			revision = s.replacementRevision(revision)
		}
		revision = comesBackAt(o, revision)
		id, ok := ids.next(revision)
		if !ok {
			return
		}
		s.Places = append(s.Places, Place{ID: id, Ordinal: -1, Revision: revision, Surge: i >= s.Missing})
	}
}

// replacementRevision is the revision of the first pod that is to be replaced as it is.
func (s *State) replacementRevision(otherwise string) string {
	for _, m := range s.Candidates {
		if m.To == m.Replica.Revision {
			return m.To
		}
	}
	return otherwise
}

// idSource hands out identities: those first whose claims are free, then the next of the revision's sequence.
type idSource struct {
	set    *observed.Set
	batch  int
	vacant []string
	taken  map[string]bool
	fresh  map[string][]string
}

func newIDs(o *observed.Set, batch int) *idSource {
	s := &idSource{set: o, batch: batch, taken: make(map[string]bool, len(o.Replicas)), fresh: map[string][]string{}}
	for id := range o.Blocked {
		s.taken[id] = true
	}
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if r.Pod == nil && !s.taken[r.ID] {
			s.vacant = append(s.vacant, r.ID)
		}
		s.taken[r.ID] = true
	}
	return s
}

// next hands out an identity; false when there are none left.
func (s *idSource) next(revision string) (string, bool) {
	if len(s.vacant) > 0 {
		id := s.vacant[0]
		s.vacant = s.vacant[1:]
		return id, true
	}
	if len(s.fresh[revision]) == 0 {
		taken := func(id string) bool { return s.taken[id] }
		s.fresh[revision] = identity.NewSequence(s.set.UID, revision).Next(s.batch, taken)
	}
	for len(s.fresh[revision]) > 0 {
		id := s.fresh[revision][0]
		s.fresh[revision] = s.fresh[revision][1:]
		if !s.taken[id] {
			s.taken[id] = true
			return id, true
		}
	}
	return "", false
}
