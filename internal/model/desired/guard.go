// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"math"
	"slices"
	"time"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// guard limits how many pods a bad template can break. While as many pods of the update revision as an update may disturb are
// unavailable, nothing more comes to that revision: no pod is moved to it, and missing pods come at the current revision.
type guard struct {
	// Unavailable is how many pods that are certain to stay at each revision are not available.
	Unavailable map[string]int
	// YieldsAt is when the guard lets broken pods pass; the zero time if it does not.
	YieldsAt time.Time
	// Holds is true if the guard holds the update revision.
	Holds bool
	// allowed is how many more members may come at the update revision, at least 0. back is how many of them are on their way back.
	// instead is the revision of the others. works is true once a pod of the update revision is available.
	allowed, back int
	instead       string
	works         bool
	// StandIns is how many pods of a set with random names are no members, because the rollout could not have them without surge.
	StandIns int
	// moreSurge is how many more surge pods may come at the update revision in addition; none if it is negative.
	moreSurge int
	// held is how many pods hold a place without being active.
	held int
}

// GuardLimit returns how many pods at a revision may be unavailable once a number of others have moved to it, at least 1. Surge pods come
// on top, because they are not needed for availability. pods is how many active pods stay or are created, surging how many of them are
// marked as surge. A set without marks may have one surge pod fewer for each pod that has moved. If moves did not count that, a successor
// without a place would come at the current revision, and be moved again.
func (s *State) GuardLimit(snap *snapshot.Set, pods, surging, moved int) int {
	surge := s.Surge
	if !snap.GivesBack() {
		surge = min(surge, s.due-moved)
	}
	return max(1, snap.Limits.MaxUnavailable+max(surging, min(surge, pods+s.held-snap.Limits.Replicas)))
}

// watch counts the pods that the guard counts.
func (s *State) watch(snap *snapshot.Set) {
	s.Unavailable = map[string]int{}
	surging, serving := 0, 0 // serving are those that serve and may run other images: surge has to come before they are recreated
	s.YieldsAt = yieldsAt(snap)
	passed := yielded(snap, s.YieldsAt)
	s.instead = obtainable(snap, snap.Current.Name)
	s.works = passed || !guarded(snap) || works(snap)
	for r := range snap.Unsteady() {
		switch {
		case r.Terminating && s.returns(snap, r) && r.OnItsWay(snap.Now) > 0:
			s.back++
			continue
		case !r.Active() || s.Goes(r):
			continue
		case r.Available, snap.Ordinal() && !s.Stays(snap, r):
		default:
			s.Unavailable[r.Revision]++
			if r.Revision == snap.Update.Name && r.ServesUnproven() {
				serving++
			}
		}
		if r.Surge {
			surging++
		}
	}
	s.leaveOutMoving(snap)
	if !guarded(snap) || passed {
		s.allowed, s.moreSurge = math.MaxInt, math.MaxInt
		return
	}
	unavailable, limit := s.Unavailable[snap.Update.Name], s.GuardLimit(snap, snap.Active()-len(s.Going)+s.Missing, surging, 0)
	s.Holds = unavailable >= limit
	s.allowed = max(0, limit-unavailable)
	s.moreSurge = snap.Limits.MaxUnavailable + s.Surge - (unavailable - serving)
}

// Protects reports whether the current revision stands in for the update revision, because no pod of that is available.
func (g *guard) Protects() bool { return !g.works }

// leaveOutMoving leaves out the pods that are to move in a set with random names. Of the update revision, as many stay as are not too many:
// unavailable ones move first. Of others none counts, or broken pods that move in opposite directions would wait for each other.
func (s *State) leaveOutMoving(snap *snapshot.Set) {
	if snap.Ordinal() {
		return
	}
	for revision, excess := range s.Excess {
		if revision != snap.Update.Name {
			excess = s.Unavailable[revision]
		}
		s.Unavailable[revision] = max(0, s.Unavailable[revision]-excess)
	}
}

// works reports whether a pod of the update revision is available.
func works(snap *snapshot.Set) bool {
	if snap.CountSteady()[snap.Update.Name] > 0 {
		return true
	}
	for r := range snap.Unsteady() {
		if r.Available && r.Revision == snap.Update.Name {
			return true
		}
	}
	return false
}

// moved reports whether the set took the pod of an identity for one that may come at the update revision.
func moved(snap *snapshot.Set, id string) bool {
	revision, taken := snap.Replacing[id]
	return taken && revision != snap.Current.Name
}

// emptied returns how many of the places without a pod of a set with random names were emptied by a move.
func emptied(snap *snapshot.Set) (n int) {
	for id := range snap.Replacing {
		if moved(snap, id) {
			n++
		}
	}
	for r := range snap.Unsteady() {
		if r.Terminating && moved(snap, r.ID) && holdsPlace(snap, r) {
			n--
		}
	}
	return n
}

// returnsAt returns the revision of the successor of an ordinal's pod that is terminating or has ended, given the wanted one.
func (g *guard) returnsAt(snap *snapshot.Set, r *snapshot.Replica, revision string) string {
	if revision == snap.Update.Name && !moved(snap, r.ID) && snap.Unseen == 0 && g.Blocks(snap, r.Ordinal) {
		return g.instead
	}
	return revision
}

// Blocks reports whether a pod of the update revision could keep all others of an OrderedReady set from coming, because that revision
// does not work yet. The highest ordinals, where moves begin, keep no more than maxUnavailable from coming.
func (g *guard) Blocks(snap *snapshot.Set, ordinal int) bool {
	k, _ := snap.InUse(ordinal)
	return !g.works && snap.OrderedReady() && k < snap.Limits.Replicas-snap.Limits.MaxUnavailable
}

// admitted returns how many of the members that are wanted at the update revision may come at it now. A move has emptied the places of
// some of them, and has spent the budget for that. Of the others, which were lost or added, no more than maxUnavailable come at a
// revision that does not work yet, unless nothing can come at the current one.
func (g *guard) admitted(snap *snapshot.Set, wanted, moved int) int {
	moved = min(wanted, moved, g.allowed)
	others := min(wanted-moved, max(0, g.allowed-g.back-moved))
	if !g.works && !snap.RefusesAll() {
		others = min(others, max(snap.Limits.MaxUnavailable, snap.Unseen))
	}
	return moved + others
}

// admit gives the current revision to the places of ordinals that may not come at the update revision. Those that a move emptied may
// come first, and then those whose pods the API server refuses: these are not on their way.
func (s *State) admit(snap *snapshot.Set) {
	var wanted, refused, others, lower []*Place
	for i := range s.Places {
		switch place := &s.Places[i]; {
		case place.Revision != snap.Update.Name:
		case snap.RefusesCreate(place.ID):
			refused = append(refused, place)
		case moved(snap, place.ID):
			wanted = append(wanted, place)
		case s.Blocks(snap, place.Ordinal):
			lower = append(lower, place)
		default:
			others = append(others, place)
		}
	}
	slices.Reverse(lower)
	wanted = append(wanted, refused...)
	n := min(s.admitted(snap, len(wanted)+len(others)+len(lower), len(wanted)), len(wanted)+max(len(others), snap.Unseen))
	for i, place := range slices.Concat(wanted, others, lower) {
		if i >= n {
			place.Revision = s.instead
		}
	}
}

// ChanceLeft returns for how long a pod that came at the current revision instead of the update revision, or was updated in place to it, may
// still become ready before it is moved there: until that works, a minute.
func (g *guard) ChanceLeft(snap *snapshot.Set, r *snapshot.Replica) time.Duration {
	came, waited := r.Created, snap.Now.Sub(r.UnavailableSince())
	if r.Restarting {
		came, waited = max(came, snap.Now.Add(-r.Waited).Unix()), min(waited, r.Waited)
	}
	if g.works || r.Revision != snap.Current.Name || snap.Update.Since <= 0 || came < snap.Update.Since {
		return 0
	}
	return max(0, snapshot.Patience-waited)
}

// yieldsAt returns when nothing is left to protect, and members that become ready only together must come at the update revision: when
// no pod has been ready for a while, and each member at the current revision has had its chance to be. It is the zero time if that
// is not so, under OrderedReady, where members cannot become ready together, for a member whose node does not answer, and if members are
// missing and none is at the current revision, which may still work.
func yieldsAt(snap *snapshot.Set) time.Time {
	if snap.NoneSince.IsZero() || snap.OrderedReady() {
		return time.Time{}
	}
	at, protects := snap.NoneSince, guarded(snap)
	tried := !protects || !triesCurrent(snap)
	for r := range snap.Unsteady() {
		if !protects || r.Pod == nil || snap.Condemned(r) || r.Updating && r.State != v1beta1.LifecyclePreparingNormal || r.Revision != snap.Current.Name {
			continue
		}
		if r.Unreachable {
			return time.Time{}
		}
		tried = true
		if since := chanceSince(snap, r); since.After(at) {
			at = since
		}
	}
	if !tried {
		return time.Time{}
	}
	return at.Add(snapshot.Patience)
}

// triesCurrent reports whether a missing member, if none is at the current revision, comes there before the guard yields. It does not if one
// was there since no pod has been ready, if a move may have taken it from there, or if the API server refuses it.
func triesCurrent(snap *snapshot.Set) bool {
	for id := range snap.Replacing {
		if moved(snap, id) {
			return false
		}
	}
	return snap.Lacks() && !snap.TriedCurrent && snap.Unseen == 0 && !snap.Preflights[snap.Current.Name].Refuses()
}

// yielded reports whether the guard lets broken pods pass, given when it does.
func yielded(snap *snapshot.Set, at time.Time) bool { return !at.IsZero() && !snap.Now.Before(at) }

// chanceSince returns since when an active pod has its chance to become ready. Without a node it has the deadline: it runs when there is
// one again.
func chanceSince(snap *snapshot.Set, r *snapshot.Replica) (since time.Time) {
	if !r.Active() {
		return since
	}
	since = r.UnavailableSince()
	if tried := podstate.TriedSince(r.Pod); tried.After(since) {
		since = tried
	}
	if deadline, limited := snap.ProgressDeadline(); limited && !r.Scheduled {
		since = since.Add(max(0, deadline-snapshot.Patience))
	}
	return since
}

// guarded reports whether the current revision stands in for the update revision while the guard holds that.
func guarded(snap *snapshot.Set) bool {
	return snap.Rolling() && !snap.Paused() && !snap.Rejected && !snap.Unproven && snap.Strategy() == v1beta1.RollingUpdateStrategy && snap.Current.Template != nil
}

// returns reports whether the successor of a terminating pod is wanted at the update revision, in the same place. Under
// OrderedReady the lowest place comes first, whatever terminates above it.
func (s *State) returns(snap *snapshot.Set, r *snapshot.Replica) bool {
	if snap.OrderedReady() {
		return false
	}
	if !snap.Ordinal() {
		return !r.Surge && holdsPlace(snap, r) && s.next(snap, claimsOf(snap, r)) == snap.Update.Name
	}
	k, used := snap.InUse(r.Ordinal)
	return used && s.returnsAt(snap, r, at(snap, k)) == snap.Update.Name
}

// guardedAt returns the revision of a new pod, given the wanted one. It is the current revision while the guard holds pods of the
// update revision, so that a set keeps running with a bad template.
func (g *guard) guardedAt(snap *snapshot.Set, revision string) string {
	if g.Holds && revision == snap.Update.Name {
		return obtainable(snap, snap.Current.Name)
	}
	return comesBackAt(snap, revision)
}

// comesBackAt returns the revision of a new pod that the guard does not hold, given the wanted one. It is the current revision
// while the API server refuses pods of the update revision. That may be a revision that was never complete: some of its pods may
// serve.
func comesBackAt(snap *snapshot.Set, revision string) string {
	if revision == snap.Update.Name && snap.ComesBackAtCurrent() {
		revision = snap.Current.Name
	}
	return obtainable(snap, revision)
}
