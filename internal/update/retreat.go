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
// there, as after limits were lowered, or because they keep members from coming since the set was scaled up. It returns only pods that have
// not become ready there for a while, and none if one is ready.
func (b *budget) tooMany() (back []desired.Candidate) {
	over := b.unavailable[b.snap.Update.Name] - b.state.GuardLimit(b.snap, b.pods, b.surge, 0)
	if !b.state.Protects() || !b.guardYieldsAt.IsZero() {
		return nil
	}
	for r := range b.snap.Unsteady() {
		if r.Revision != b.snap.Update.Name || !r.Active() {
			continue
		}
		if r.Ready {
			return nil
		}
		patience, blocks := b.blocks(r)
		if len(back) < over {
			patience, blocks = snapshot.Patience, true
		}
		if blocks && b.goesAfter(patience, r) {
			back = append(back, desired.Candidate{Replica: r, To: b.snap.Current.Name})
		}
	}
	return back
}

// goesAfter reports whether a broken pod goes back from the update revision, because it has not become ready there for a while.
func (b *budget) goesAfter(patience time.Duration, r *snapshot.Replica) bool {
	if !r.Broken() || r.Surge || r.ToReplace() || b.state.Goes(r) {
		return false
	}
	since, known := b.neverReadySince(r)
	left := since.Add(patience).Sub(b.snap.Now)
	if known && left > 0 {
		b.yieldAfter(left)
	}
	return known && left <= 0
}

// blocks reports whether a pod keeps others of an OrderedReady set from coming, and for how long it may. It may be one that was broken at
// the current revision too, and is about to start. Surge that scaling up has made a member is not.
func (b *budget) blocks(r *snapshot.Replica) (patience time.Duration, blocks bool) {
	if b.state.Missing == 0 || !b.state.Blocks(b.snap, r.Ordinal) {
		return 0, false
	}
	if r.MadeForSurge {
		return snapshot.Patience, true
	}
	return b.snap.ProgressDeadline()
}

// neverReadySince returns since when a pod has not become ready at its revision; false if it was.
func (b *budget) neverReadySince(r *snapshot.Replica) (since time.Time, known bool) {
	if r.Updating {
		return b.updatingSince(r), true
	}
	return podstate.UnreadySince(r.Pod), podstate.NeverReady(r.Pod)
}

// updatingSince returns since when a pod has been updated in place, as far as this manager knows.
func (b *budget) updatingSince(r *snapshot.Replica) time.Time { return b.snap.Now.Add(-r.Waited) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
