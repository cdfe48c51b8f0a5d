// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "rollset.dev/rollset/api/v1beta1"

// Proves reports whether the set proves its update revision now: it has replicas, and a pod at that revision is available in each of
// their places. What goes does not matter: pods that terminate, surplus pods, surge. A step at work ends first, because a revision
// that waits for a gate may still be given up. Without replicas nothing is proven.
func (s *Set) Proves() bool {
	if s.Limits.Replicas == 0 || s.Rejected || s.Update.Name == "" || s.Rollout.AtWork() {
		return false
	}
	proven, others, current := s.CountSteady()[s.Update.Name], s.allSteady()-s.CountSteady()[s.Update.Name], s.CountSteady()[s.Current.Name]
	for r := range s.Unsteady() {
		switch {
		case !s.isMember(r):
		case r.Revision != s.Update.Name:
			others++
			if r.Revision == s.Current.Name {
				current++
			}
		case r.Available && r.Waiting == "":
			proven++
		}
	}
	return proven >= s.Limits.Replicas && s.stay(others, current) == 0
}

// stay returns how many pods of a set with more than spec.replicas stay at other revisions than the update revision: those that the
// partition keeps, or all if no pod may move. The others go first.
func (s *Set) stay(others, current int) int {
	switch {
	case s.Ordinal(): // the pods in the places are counted, and no others
		return 0
	case s.Paused(), s.Strategy() == v1beta1.OnDeleteStrategy:
		return others
	case !s.Rolling():
		return 0
	default:
		return min(current, s.Partition())
	}
}

// Served reports whether a revision served last when another template takes its place, although it is not proven: no
// pod that stays is at the current revision, and enough pods at this one are available. It is close if only the latter is missing.
func (s *Set) Served(revision, current string) (served, near bool) {
	if s.Limits.Replicas == 0 {
		return false, false
	}
	holding, at, available := 0, 0, 0
	for i := range s.Replicas {
		r := &s.Replicas[i]
		if !s.isMember(r) {
			continue
		}
		holding++
		if r.Revision == current && current != revision {
			at++
		}
		if r.Revision == revision && r.Available {
			available++
		}
	}
	surplus := max(0, holding-s.Limits.Replicas) // pods at the current revision go first
	near = at <= surplus
	return near && available >= max(1, s.Limits.MinAvailable()), near
}

// isMember reports whether a replica has an active pod in a place that the set uses. Surge pods that are deleted again have none.
func (s *Set) isMember(r *Replica) bool { return r.Active() && !r.Surge && !s.Condemned(r) }
