// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"math"
	"time"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// guard limits how many pods a bad template can break. While as many pods of the update revision as an update may disturb are
// unavailable, nothing more comes to that revision: no pod is moved to it, and missing pods come at the current revision.
type guard struct {
	// Unavailable is how many pods that are certain to stay at each revision are not available.
	Unavailable map[string]int
	// Allowed is how many more members may come at the update revision, at least 0. Those that are on their way back are counted.
	// Instead is the revision of the others.
	Allowed int
	Instead string
	// YieldsAt is when the guard lets broken pods pass; the zero time if it does not.
	YieldsAt time.Time
	// Holds is true if the guard holds the update revision.
	Holds bool
	// surge is how many more surge pods may come at the update revision in addition, at least 0.
	surge int
}

// GuardLimit returns how many pods at a revision may be unavailable while more are moved to it, at least 1. Surge pods come on
// top, because they are not needed for availability. pods is how many pods stay or are created, surging how many of them are
// marked as surge.
func (s *State) GuardLimit(o *snapshot.Set, pods, surging int) int {
	return max(1, o.Limits.MaxUnavailable+max(surging, min(s.Surge, pods-o.Limits.Replicas)))
}

// watch counts the pods that the guard counts.
func (s *State) watch(o *snapshot.Set) {
	s.Unavailable = map[string]int{}
	surging, back := 0, 0
	s.YieldsAt = yieldsAt(o)
	passed := !s.YieldsAt.IsZero() && !o.Now.Before(s.YieldsAt)
	for r := range o.Unsteady() {
		switch {
		case r.Terminating && s.returns(o, r) && r.OnItsWay(o.Now) > 0:
			back++
			continue
		case !r.Active() || s.Goes(r):
			continue
		case !r.Available && s.Stays(o, r):
			s.Unavailable[r.Revision]++
		}
		if r.Surge {
			surging++
		}
	}
	if !guarded(o) || passed {
		s.Allowed, s.surge = math.MaxInt, math.MaxInt
		return
	}
	unavailable, limit := s.Unavailable[o.Update.Name], s.GuardLimit(o, o.Active()-len(s.Going), surging)
	s.Holds = unavailable >= limit
	s.Allowed = max(0, limit-unavailable-back)
	s.Instead = obtainable(o, o.Current.Name)
	s.surge = max(0, max(1, o.Limits.MaxUnavailable+s.Surge)-unavailable)
}

// yieldsAt returns when nothing is left to protect, and members that become ready only together must come at the update revision: when
// no pod has been ready for a while, and each member at the current revision has had its chance to be. It is the zero time if that
// is not so, under OrderedReady, where members cannot become ready together, and for a member whose node does not answer.
func yieldsAt(o *snapshot.Set) time.Time {
	if o.NoneSince.IsZero() || o.OrderedReady() {
		return time.Time{}
	}
	at, protects := o.NoneSince, guarded(o)
	for r := range o.Unsteady() {
		if !protects || r.Pod == nil || o.Condemned(r) || r.Updating || r.Revision != o.Current.Name {
			continue
		}
		if r.Unreachable {
			return time.Time{}
		}
		if since := chanceSince(o, r); since.After(at) {
			at = since
		}
	}
	return at.Add(snapshot.Patience)
}

// chanceSince returns since when an active pod has its chance to become ready. Without a node it has the deadline: it runs when there is
// one again.
func chanceSince(o *snapshot.Set, r *snapshot.Replica) (since time.Time) {
	if !r.Active() {
		return since
	}
	since = r.UnavailableSince()
	if tried := podstate.TriedSince(r.Pod); tried.After(since) {
		since = tried
	}
	if deadline, limited := o.ProgressDeadline(); limited && !r.Scheduled {
		since = since.Add(max(0, deadline-snapshot.Patience))
	}
	return since
}

// guarded reports whether the current revision stands in for the update revision while the guard holds that.
func guarded(o *snapshot.Set) bool {
	return o.Rolling() && !o.Paused() && !o.Rejected && !o.Unproven && o.Strategy() == v1alpha1.RollingUpdateStrategy && o.Current.Template != nil
}

// returns reports whether the successor of a terminating pod is wanted at the update revision, in the same place. Under
// OrderedReady the lowest place comes first, whatever terminates above it.
func (s *State) returns(o *snapshot.Set, r *snapshot.Replica) bool {
	if o.OrderedReady() {
		return false
	}
	if !o.Ordinal() {
		return !r.Surge && holdsPlace(o, r) && s.next(o, claimsOf(o, r)) == o.Update.Name
	}
	k, used := o.InUse(r.Ordinal)
	return used && at(o, k) == o.Update.Name
}

// guardedAt returns the revision of a new pod, given the wanted one. It is the current revision while the guard holds pods of the
// update revision, so that a set keeps running with a bad template.
func (s *State) guardedAt(o *snapshot.Set, revision string) string {
	if s.Holds && revision == o.Update.Name {
		return obtainable(o, o.Current.Name)
	}
	return comesBackAt(o, revision)
}

// comesBackAt returns the revision of a new pod that the guard does not hold, given the wanted one. It is the current revision
// while the API server refuses pods of the update revision. That may be a revision that was never complete: some of its pods may
// serve.
func comesBackAt(o *snapshot.Set, revision string) string {
	if revision == o.Update.Name && o.ComesBackAtCurrent() {
		revision = o.Current.Name
	}
	return obtainable(o, revision)
}
