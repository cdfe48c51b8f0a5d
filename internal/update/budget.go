// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// budget is how much may still be disturbed. Only pods that stay and places without a pod count.
type budget struct {
	snapshot.Budget

	snap  *snapshot.Set
	state *desired.State
	// serving is how many pods serve although it is not known which images they run, without those that are moved now.
	serving int
	// moved is the first available pod that is moved now, or may be gone; empty if there is none.
	moved string
	// rests is true while surplus pods are being deleted: then no pod in service is disturbed.
	rests bool
	// surging is how many surge pods of a set with ordinals are available. surgeComes is true while surge is about to come, before
	// which no pod in service is disturbed.
	surging    int
	surgeComes bool
	// pods and surge are how many pods stay or are created, and how many of them are marked as surge. moves is how many are moved now.
	pods, surge, moves int
	// unavailable counts, for each revision, the unavailable pods that stay, those about to be created, and those about to
	// come back once their predecessor is gone. missing counts the other places without a pod: they hold back healthy pods only.
	unavailable, missing map[string]int
	// unreadySince holds, for each revision, when its unavailable pods became unready, in order.
	unreadySince map[string][]time.Time
	// guardYieldsAt is when the guard lets broken pods pass, if it has held until then; the zero time if it does not.
	guardYieldsAt time.Time
	// lowest is the unavailable pod with the lowest ordinal in use; nil if all are available, or if their order does not matter.
	lowest *snapshot.Replica
	// yieldsAfter is when time alone makes the guard yield; zero if it does not.
	yieldsAfter time.Duration
}

// newBudget counts what may be disturbed once scaling is done. Surge of a set with ordinals stands in for members that would be too
// few, but takes no more of them out of service than may be moved at once without it.
func newBudget(snap *snapshot.Set, w *desired.State, scaling action.Plan) budget {
	b := budget{
		Budget:      snapshot.Budget{Available: w.Available, Floor: snap.Limits.MinAvailable()},
		snap:        snap,
		state:       w,
		rests:       w.Rests,
		unavailable: maps.Clone(w.Unavailable),
		missing:     map[string]int{},

		unreadySince:  map[string][]time.Time{},
		guardYieldsAt: w.YieldsAt,
	}
	if snap.OrderedReady() {
		b.lowest = lowestUnavailable(snap)
	}
	surging, serving := w.Surging(snap)
	if snap.Ordinal() {
		b.surging = serving
		b.Floor = max(b.Floor, snap.Limits.Replicas-snap.Limits.AtOnce()+serving)
		b.surgeComes = b.awaitsSurge(w, scaling)
	}
	pods := snap.Active() - len(w.Going)
	places := snap.Limits.Replicas - (pods - surging)
	for r := range snap.Unsteady() {
		if w.Goes(r) {
			continue
		}
		places -= b.count(r, w, places)
		if r.ServesUnproven() {
			b.serving++
		}
	}
	for _, since := range b.unreadySince {
		slices.SortFunc(since, time.Time.Compare)
	}
	b.doubt()
	created, surge := b.countCreated(w, scaling)
	b.pods, b.surge = pods+created, surging+surge
	return b
}

// awaitsSurge reports whether surge of a set with ordinals comes now, or has come and may be about to become available. A pod that
// takes longer than a minute is not waited for: what maxUnavailable allows goes on.
func (b *budget) awaitsSurge(w *desired.State, scaling action.Plan) bool {
	for _, a := range scaling.Actions {
		if c, ok := a.(action.Create); ok && c.Surge && !b.snap.RefusesCreate(c.ID) {
			return true
		}
	}
	var left time.Duration
	for r := range b.snap.Unsteady() {
		if r.Surge && r.Active() && !r.Available && !w.Goes(r) {
			left = max(left, snapshot.Patience-b.snap.Now.Sub(r.UnavailableSince()))
		}
	}
	b.yieldAfter(left)
	return left > 0
}

// countCreated counts the pods that scaling creates, and the places that it does not fill. A refused create is not on its
// way: it neither keeps broken pods from being replaced nor counts as surge.
func (b *budget) countCreated(w *desired.State, scaling action.Plan) (created, surge int) {
	comes := map[string]bool{}
	for _, a := range scaling.Actions {
		c, ok := a.(action.Create)
		if !ok || b.snap.RefusesCreate(c.ID) {
			continue
		}
		created++
		comes[c.ID] = true
		b.unavailable[c.Revision]++
		if c.Surge {
			surge++
		}
	}
	for _, place := range w.Places {
		if !place.Surge && !comes[place.ID] {
			b.missing[place.Revision]++
		}
	}
	return created, surge
}

// count adds what holds the guard beside the unavailable pods: the successors of terminating pods, if there is a place for
// them. It returns how many places they take.
func (b *budget) count(r *snapshot.Replica, w *desired.State, places int) (taken int) {
	switch {
	case r.Active() && !r.Ready:
		b.unreadySince[r.Revision] = append(b.unreadySince[r.Revision], podstate.UnreadySince(r.Pod))
	case r.Terminating:
		revision, comes := w.ComesBackAt(b.snap, r)
		if !comes || places <= 0 {
			return 0
		}
		if left := b.onItsWay(r); left > 0 {
			b.unavailable[revision]++
			b.yieldAfter(left)
		} else {
			b.missing[revision]++
		}
		return 1
	}
	return 0
}

// yieldAfter records that the guard may yield after a while.
func (b *budget) yieldAfter(d time.Duration) {
	if d > 0 && (b.yieldsAfter == 0 || d < b.yieldsAfter) {
		b.yieldsAfter = d
	}
}

// onItsWay returns for how long broken pods still wait for the successor of a terminating pod. They do not wait for one that
// is stuck, on a dead node or behind a finalizer. They do not wait either if OrderedReady makes the successor wait for other
// pods, because it must not keep those pods from being replaced.
func (b *budget) onItsWay(r *snapshot.Replica) time.Duration {
	if b.snap.OrderedReady() && b.lowest != r {
		return 0
	}
	return r.OnItsWay(b.snap.Now)
}

// lowestUnavailable returns the unavailable pod with the lowest ordinal in use; nil if all are available.
func lowestUnavailable(snap *snapshot.Set) *snapshot.Replica {
	var lowest *snapshot.Replica
	for r := range snap.Unsteady() {
		if r.Pod == nil || r.Available || lowest != nil && lowest.Ordinal < r.Ordinal {
			continue
		}
		if _, used := snap.InUse(r.Ordinal); used {
			lowest = r
		}
	}
	return lowest
}

// refuses returns what keeps a move from being made now; empty if nothing does.
func (b *budget) refuses(m desired.Candidate) action.HoldKind {
	switch {
	case desired.IsOld(b.snap, m.Replica):
		return ""
	case b.waits(m) > 0:
		return action.HeldByGuard
	case m.To != m.Replica.Revision && b.guards(m) && !b.passes(m):
		return action.HeldByGuard
	case (b.rests || b.surgeComes) && !m.Replica.OutOfService(), !b.allows(m.Replica):
		return action.HeldByBudget
	default:
		return ""
	}
}

// guards reports whether too many pods are unavailable at the revision of a move.
func (b *budget) guards(m desired.Candidate) bool {
	return b.against(m) >= b.limit(m)
}

// limit returns how many pods at a revision may be unavailable while one more is moved to it, at least 1. A healthy pod moves only as
// far as others stand in for it. A broken one moves freely, and must have a place there, and so must any pod beside stand-ins that leaves a
// place.
func (b *budget) limit(m desired.Candidate) int {
	moved, standIns := 0, b.state.StandIns
	leavesPlace := standIns > 0 && b.pods-b.surge-b.moves <= b.snap.Limits.Replicas+standIns
	if m.Replica.OutOfService() || leavesPlace {
		moved = b.moves + 1
	}
	return b.state.GuardLimit(b.snap, b.pods, b.surge, moved)
}

// waits returns for how long a broken pod has its chance to become ready where it is. One whose gate is closed, and that does not restart,
// has none: its move has begun.
func (b *budget) waits(m desired.Candidate) time.Duration {
	if m.To != b.snap.Update.Name || !m.Replica.Broken() || m.Replica.Gate.Closed() && !m.Replica.Restarting {
		return 0
	}
	left := b.state.ChanceLeft(b.snap, m.Replica)
	if left > 0 {
		b.yieldAfter(left)
	}
	return left
}

// against counts what the guard counts against a move.
func (b *budget) against(m desired.Candidate) int {
	if m.Replica.OutOfService() {
		return b.unavailable[m.To]
	}
	return b.unavailable[m.To] + b.missing[m.To]
}

// passes reports whether a broken pod passes the guard, because no pod of the set has been available for a while, and the
// guard has held for as long.
func (b *budget) passes(m desired.Candidate) bool {
	return !b.guardYieldsAt.IsZero() && m.Replica.Broken() && !m.Replica.Gate.Closed() && b.hasHeld(m, b.guardYieldsAt)
}

// hasHeld reports whether the guard has held for a while against a move, and a time has come.
func (b *budget) hasHeld(m desired.Candidate, at time.Time) bool {
	held, limit := b.unreadySince[m.To], b.limit(m)
	if len(held) < limit {
		return false
	}
	if since := held[limit-1].Add(snapshot.Patience); since.After(at) {
		at = since
	}
	left := at.Sub(b.snap.Now)
	if left > 0 {
		b.yieldAfter(left)
	}
	return left <= 0
}

func (b *budget) explain(why action.HoldKind, m desired.Candidate) string {
	if why == action.HeldByGuard && b.waits(m) > 0 {
		return fmt.Sprintf("it came at revision %s because no pod of revision %s is available, and has a minute to become ready", m.Replica.Revision, m.To)
	}
	if why == action.HeldByGuard {
		return fmt.Sprintf("%d unavailable at revision %s, no more are moved to it", b.against(m), m.To)
	}
	if b.rests {
		return "scaling down; pods in service are not updated until the pods that are too many are gone"
	}
	if b.surgeComes {
		return "surge comes first"
	}
	return fmt.Sprintf("maxUnavailable %d: %d of %d pods are available%s%s", b.snap.Limits.MaxUnavailable, b.members(), b.snap.Limits.Replicas, b.beside(), b.spentOn())
}

// beside returns how much surge of a set with ordinals is available, or that none can come.
func (b *budget) beside() string {
	switch {
	case b.surging > 0:
		return fmt.Sprintf(" beside %d of surge", b.surging)
	case b.snap.Ordinal() && b.state.Surge > 0 && b.snap.Ordinals.Len() <= b.snap.Limits.Replicas:
		return ", and no higher ordinal is left for surge"
	default:
		return ""
	}
}

// members returns how many available pods are no surge of a set with ordinals.
func (b *budget) members() int { return b.Available - b.surging }

// spend takes a move into account.
func (b *budget) spend(m desired.Candidate) {
	b.unavailable[m.To]++
	b.moves++
	if m.Replica.ServesUnproven() {
		b.serving--
	}
	if m.Replica.Available && !b.snap.Doubts(m.Replica) {
		b.Spend(m.Replica)
		b.moved = cmp.Or(b.moved, m.Replica.Pod.Name)
	}
}
