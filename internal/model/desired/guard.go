// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"math"
	"slices"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// guard limits how many pods a bad template can break. While as many pods of the update revision as an update may disturb are
// unavailable, nothing more comes to that revision: no pod is moved to it, and missing pods come at the current revision.
type guard struct {
	// Unavailable is how many pods that are certain to stay at each revision are not available.
	Unavailable map[string]int
	// Allowed is how many more members may come at the update revision, at least 0.
	Allowed int
	// surge is how many more surge pods may come at the update revision in addition, at least 0.
	surge int
	// first is the first place of a set with ordinals whose missing pod may come at the update revision.
	first int
}

// GuardLimit returns how many pods at a revision may be unavailable while more are moved to it, at least 1. Surge pods come on
// top, because they are not needed for availability. pods is how many pods stay or are created, surging how many of them are
// marked as surge.
func (s *State) GuardLimit(o *snapshot.Set, pods, surging int) int {
	return max(1, o.Limits.MaxUnavailable+min(s.Surge, max(surging, pods-o.Limits.Replicas)))
}

// watch counts the pods that the guard counts.
func (s *State) watch(o *snapshot.Set) {
	s.Unavailable = map[string]int{}
	surging := 0
	for r := range o.Unsteady() {
		switch {
		case !r.Active() || s.Goes(r):
			continue
		case !r.Available && s.Stays(o, r):
			s.Unavailable[r.Revision]++
		}
		if r.Surge {
			surging++
		}
	}
	if !guarded(o) {
		s.Allowed, s.surge = math.MaxInt, math.MaxInt
		return
	}
	unavailable := s.Unavailable[o.Update.Name]
	s.Allowed = max(0, s.GuardLimit(o, o.Active()-len(s.Going), surging)-unavailable)
	s.surge = max(0, max(1, o.Limits.MaxUnavailable+s.Surge)-unavailable)
}

// guarded reports whether the current revision stands in for the update revision while the guard holds that.
func guarded(o *snapshot.Set) bool {
	return o.Rolling() && !o.Rejected && !o.Unproven && o.Strategy() == v1alpha1.RollingUpdateStrategy && o.Current.Template != nil
}

// admit gives the places that the guard allows to the update revision, the highest first, as an update does. The places that
// have an active pod need none.
func (s *State) admit(o *snapshot.Set, active []int) {
	if s.Allowed >= o.Limits.Replicas {
		return
	}
	slices.SortFunc(active, func(a, b int) int { return cmp.Compare(b, a) })
	s.first = o.Limits.Replicas - s.Allowed
	for _, k := range active {
		if k < s.first {
			break
		}
		s.first--
	}
	s.first = max(0, s.first)
}

// comesBackAt returns the revision of a new pod, given the wanted one. It is the current revision while the guard or the API
// server refuses pods of the update revision, so that a set keeps running with a bad template. While the API server refuses
// them, that may be a revision that was never complete: some of its pods may serve.
func comesBackAt(o *snapshot.Set, revision string, allowed bool) string {
	if revision == o.Update.Name && (!allowed || o.ComesBackAtCurrent()) {
		revision = o.Current.Name
	}
	return obtainable(o, revision)
}
