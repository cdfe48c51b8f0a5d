// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// retreat finds the broken pods that come back at the current revision.
type retreat struct{ *budget }

// goesBack reports whether a stray that has been broken for a while comes back at the current revision, because the guard has held for as
// long against its move. Where no pod is available, broken pods pass the guard instead.
func (b retreat) goesBack(m desired.Candidate) bool {
	if m.To != b.snap.Update.Name || !desired.IsBrokenStray(b.snap, m.Replica) || m.Replica.Gate.Closed() || !b.guards(m) || !b.guardYieldsAt.IsZero() {
		return false
	}
	since := podstate.UnreadySince(m.Replica.Pod)
	for r := range b.snap.Unsteady() {
		if !r.Updating || r.Revision != m.To {
			continue
		}
		if !r.Restarting { // it waits for a hook
			return false
		}
		since = latest(since, b.restartingSince(r))
	}
	return b.hasHeld(m, since.Add(snapshot.Patience))
}

// tooMany returns the pods that come back at the current revision because more are broken at the update revision than the guard allows
// there, as after limits were lowered, or because they were surge and keep members from coming since the set was scaled up. It returns only
// pods that have not become ready there for a while, and none if one is ready. The next one does after left; zero if time alone changes
// nothing.
func (b retreat) tooMany() (back []*snapshot.Replica, left time.Duration) {
	if !b.state.Protects() || !b.guardYieldsAt.IsZero() {
		return nil, 0
	}
	var prepared, others []*snapshot.Replica
	for r := range b.snap.Unsteady() {
		switch {
		case r.Revision != b.snap.Update.Name || !r.Active():
		case r.Ready:
			return nil, 0
		case !r.Broken() || r.Surge || r.ToReplace() || b.state.Goes(r):
		case r.PreparesToMove():
			prepared = append(prepared, r)
		default:
			others = append(others, r)
		}
	}
	over := b.unavailable[b.snap.Update.Name] - b.state.GuardLimit(b.snap, b.pods, b.surge, 0)
	for _, r := range append(prepared, others...) {
		since, known := b.brokenSince(r)
		switch wait := since.Add(snapshot.Patience).Sub(b.snap.Now); {
		case !known, len(back) >= over && !b.blocks(r):
		case wait > 0:
			left = action.Sooner(left, wait)
		default:
			back = append(back, r)
		}
	}
	return back, left
}

// blocks reports whether a pod that was surge keeps others of an OrderedReady set from coming. Another one may have been broken at the
// current revision too.
func (b retreat) blocks(r *snapshot.Replica) bool {
	return r.MadeForSurge && b.state.Missing > 0 && b.state.Blocks(b.snap, r.Ordinal)
}

// brokenSince returns since when a broken pod has not become ready at its revision; false if it was, or waits for a hook. A pod that is
// prepared to move has been broken for long enough.
func (b retreat) brokenSince(r *snapshot.Replica) (since time.Time, known bool) {
	switch {
	case r.PreparesToMove():
		return time.Time{}, true
	case r.Restarting:
		return b.restartingSince(r), true
	default:
		since = podstate.UnreadySince(r.Pod)
		unreadyInPlace := r.Gate.Status == corev1.ConditionTrue && !since.After(r.Gate.Since) // since before the update was done
		return since, !r.Updating && (podstate.NeverReady(r.Pod) || unreadyInPlace)
	}
}

// restartingSince returns since when a pod has been updated in place, as far as this manager knows.
func (b retreat) restartingSince(r *snapshot.Replica) time.Time { return b.snap.Now.Add(-r.Waited) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
