// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"time"

	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// goesBack reports whether a stray that has been broken for a while comes back at the current revision, because the guard has held for as
// long against its move. Where no pod is available, broken pods pass the guard instead.
func (b *budget) goesBack(m desired.Candidate) bool {
	if m.To != b.snap.Update.Name || !desired.IsBrokenStray(b.snap, m.Replica) || m.Replica.Gate.Closed() || !b.guards(m) || !b.guardYieldsAt.IsZero() {
		return false
	}
	since := podstate.UnreadySince(m.Replica.Pod)
	for r := range b.snap.Unsteady() {
		if r.Updating && r.Revision == m.To {
			since = latest(since, b.updatingSince(r))
		}
	}
	return b.hasHeld(m, since.Add(snapshot.Patience))
}

// tooMany returns the pods that come back at the current revision because more are broken at the update revision than the guard allows
// there, as after limits were lowered. It returns only pods that have not become ready there for a while, and none if one is ready.
func (b *budget) tooMany() (back []desired.Candidate) {
	over := b.unavailable[b.snap.Update.Name] - b.state.GuardLimit(b.snap, b.pods, b.surge, 0)
	if over <= 0 || !b.state.Protects() || !b.guardYieldsAt.IsZero() {
		return nil
	}
	for r := range b.snap.Unsteady() {
		if r.Revision == b.snap.Update.Name && r.Active() && r.Ready {
			return nil
		}
		if len(back) == over || r.Revision != b.snap.Update.Name || !r.Broken() || r.Surge || r.ToReplace() || b.state.Goes(r) {
			continue
		}
		var since time.Time
		switch {
		case r.Updating:
			since = b.updatingSince(r)
		case podstate.NeverReady(r.Pod):
			since = podstate.UnreadySince(r.Pod)
		default:
			continue
		}
		if left := since.Add(snapshot.Patience).Sub(b.snap.Now); left > 0 {
			b.yieldAfter(left)
			continue
		}
		back = append(back, desired.Candidate{Replica: r, To: b.snap.Current.Name})
	}
	return back
}

// updatingSince returns since when a pod has been updated in place, as far as this manager knows.
func (b *budget) updatingSince(r *snapshot.Replica) time.Time { return b.snap.Now.Add(-r.Waited) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
