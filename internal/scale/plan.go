// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package scale plans the number of pods: which to create, and which to delete because they are surplus or finished.
//
// The rule: failed and succeeded pods are deleted, after a back-off if they keep ending soon after they started. Surplus
// pods are deleted. Places without a pod are filled, all at once, or in order if the set asks for it. Members come first: a
// surplus pod that cannot be deleted now takes no place and no turn. Package desired decides which pods are surplus and which
// revision a place gets. Package update moves pods between revisions.
package scale

import (
	"fmt"
	"slices"
	"time"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Down returns what to delete so that the set has no more than the pods it should have.
func Down(snap *snapshot.Set, w *desired.State) action.Plan {
	p := action.Plan{EveryHold: snap.EveryHold}
	removeFinished(snap, w, &p)
	switch {
	case snap.Ordinal() && len(w.Going) > 0:
		removeCondemned(snap, w, &p)
	case !snap.Ordinal():
		removeSurplus(snap, w, &p)
	}
	return p
}

// Up plans the creates by which the set gets the pods it should have. down has the deletes of this plan, without those that wait
// for a lifecycle hook.
func Up(snap *snapshot.Set, w *desired.State, down action.Plan) action.Plan {
	p := action.Plan{EveryHold: snap.EveryHold}
	if len(w.Places) > 0 {
		grow(snap, w, down, &p)
	}
	return p
}

// Rests reports whether surplus pods are being deleted, so that no pod in service is updated meanwhile: availability is given
// up for one reason at a time. A deletion holds nothing up while it waits: because of a hook, a refusal, its order, a
// finalizer or a lost node. A terminating pod with a random name looks like one that was moved. left is how long until a
// terminating pod counts as stuck.
func Rests(snap *snapshot.Set, down action.Plan) (rests bool, left time.Duration) {
	for r := range snap.Unsteady() {
		if r.Terminating && snap.Condemned(r) && !r.Surge && !r.Stuck(snap.Now) {
			left = max(left, r.StuckAt().Sub(snap.Now)+time.Second)
		}
	}
	members, surge := leaving(snap, down)
	return left > 0 || members+surge > 0, left
}

// leaving counts the surplus members and the surge pods that a plan deletes, without those whose deletion was refused a moment ago.
func leaving(snap *snapshot.Set, down action.Plan) (members, surge int) {
	for _, a := range down.Actions {
		d, ok := a.(action.Delete)
		switch {
		case !ok || d.Cause != action.ScaleDown || snap.Refused(action.KeyOf(d)):
		case snapshot.Surges(d.Pod):
			surge++
		default:
			members++
		}
	}
	return members, surge
}

// noMoreSurge is why surge pods are deleted.
const noMoreSurge = "the rollout needs no more surge"

// removeSurplus deletes the pods of a set with random names that go.
func removeSurplus(snap *snapshot.Set, w *desired.State, p *action.Plan) {
	for i, r := range w.Going {
		why := noMoreSurge
		if !r.Surge && i >= w.Unneeded {
			why = fmt.Sprintf("scale down to %d", snap.Active()-len(w.Going))
		}
		p.Add(action.Delete{Pod: r.Pod, Cause: action.ScaleDown, Reason: why})
	}
	for r := range snap.Unsteady() {
		if r.Active() && r.Surge && r.ToReplace() && !w.Goes(r) {
			p.Hold(action.HeldByBudget, r.Pod.Name, "it is to be deleted when enough other pods are available")
		}
	}
}

// removeFinished deletes pods that have failed or succeeded, so that their places are filled again. A pod that ended soon
// after it started, and would come back unchanged, waits for the back-off.
func removeFinished(snap *snapshot.Set, w *desired.State, p *action.Plan) {
	for r := range snap.Unsteady() {
		if !r.Finished || r.Terminating {
			continue
		}
		if back, _ := w.ComesBackAt(snap, r); snap.FinishedWait > 0 && back == r.Revision && podstate.EndedSoon(r.Pod, snap.Now) {
			p.Hold(action.HeldByBackOff, r.Pod.Name, "the pod has ended (%s) and is replaced after a back-off", r.Pod.Status.Phase)
			p.Wake(snap.FinishedWait)
			continue
		}
		p.Add(action.Delete{Pod: r.Pod, Cause: action.Finished, To: r.Revision, Reason: "ended: " + string(r.Pod.Status.Phase)})
	}
}

// grow fills the places that nothing holds.
func grow(snap *snapshot.Set, w *desired.State, down action.Plan, p *action.Plan) {
	if old := firstOld(snap); old != nil {
		where := "at revision " + old.Revision
		if old.Revision == "" {
			where = "without a revision"
		}
		p.Hold(action.HeldByOldPods, old.Pod.Name, "updateStrategy Recreate: no new pod before the last %s is gone", where)
		return
	}
	room, limit := room(snap, w, down, p), newLimit(snap, w)
	for _, place := range inTurn(snap, w.Places) {
		if room == 0 {
			return
		}
		counted := place
		if !w.Holds { // the pod moves at once, and counts where it moves to
			counted.Revision = place.Wanted
		}
		if held(snap, place, p) || limit.holds(counted, p) {
			continue
		}
		room--
		p.Add(action.Create{ID: place.ID, Revision: place.Revision, Surge: place.Surge && snap.GivesBack(), Reason: reason(place)})
	}
}

// inTurn returns the places that may be filled now. Under OrderedReady, that is the first one.
func inTurn(snap *snapshot.Set, places []desired.Place) []desired.Place {
	if snap.OrderedReady() {
		return places[:min(1, len(places))]
	}
	return places
}

// held holds a place that cannot be filled now.
func held(snap *snapshot.Set, place desired.Place, p *action.Plan) bool {
	b, blocked := snap.Blocked[place.ID]
	why := snap.LostClaim(place.ID, place.Revision)
	switch {
	case blocked:
		p.Hold(kindOf(b), snap.PodName(place.ID), "%s", b.Reason)
		p.Wake(b.Retry)
	case why != "":
		p.Hold(action.HeldByClaim, snap.PodName(place.ID), "%s", why)
	default:
		return heldByRefusal(snap, place, p) || snap.OrderedReady() && heldByOrder(snap, place, p)
	}
	if snap.Preflights[place.Revision].Refuses() { // no create shows whether it still does
		ask(snap, place.Revision, p)
	}
	return true
}

// ask asks the API server once more whether it accepts pods of a revision, when the back-off since its last answer is over.
func ask(snap *snapshot.Set, revision string, p *action.Plan) {
	again := action.Action(action.Preflight{Revision: revision})
	if snap.Preflights[revision].Retry <= 0 && !slices.Contains(p.Actions, again) {
		p.Add(again)
	}
	p.Wake(snap.Preflights[revision].Retry)
}

// heldByRefusal holds a place whose pod was refused a moment ago: because of its template, because of a quota that all pods
// share, or for itself alone. A claim that was refused holds no pod that needs none. Where the last pod was accepted and altered, a
// dry run comes before the next one.
func heldByRefusal(snap *snapshot.Set, place desired.Place, p *action.Plan) bool {
	if answer := snap.Preflights[place.Revision]; answer.Refuses() && answer.Retry > 0 || answer.Altered && answer.Refusal != "" {
		p.Hold(action.HeldByPreflight, snap.PodName(place.ID), "the API server refuses pods of revision %s: %s", place.Revision, answer.Refusal)
		ask(snap, place.Revision, p)
		return true
	}
	for _, k := range []attempt.Key{attempt.AnyCreate(), {Verb: attempt.Creating, Object: place.ID}} {
		if snap.LeavesAside(k) && !snap.Spares(snap.Refusal(k), place.ID, place.Revision) {
			p.LeaveAside(snap, k, snap.PodName(place.ID))
			return true
		}
	}
	return false
}

func kindOf(b snapshot.Block) action.HoldKind {
	if b.Claim {
		return action.HeldByClaim
	}
	return action.HeldByName
}

func reason(place desired.Place) string {
	if place.Surge {
		return "surge for update"
	}
	return "missing"
}

// firstOld returns a pod, active or terminating, that must be gone before any new pod is created; nil if there is none.
func firstOld(snap *snapshot.Set) *snapshot.Replica {
	for i := range snap.Replicas {
		if r := &snap.Replicas[i]; r.Pod != nil && desired.IsOld(snap, r) {
			return r
		}
	}
	return nil
}

// room returns how many pods may be created now, and adds the hold for the others. When the range of ordinals moves, a pod goes
// before another comes: one that goes now, or once enough other pods are available, makes a new one wait. If none goes and none
// is about to become available, one is created nevertheless.
func room(snap *snapshot.Set, w *desired.State, down action.Plan, p *action.Plan) int {
	if !snap.Ordinal() {
		return len(w.Places)
	}
	condemned := slices.DeleteFunc(slices.Clone(w.Going), func(r *snapshot.Replica) bool { return r.Surge })
	going, _ := leaving(snap, down)
	waiting := 0
	for _, h := range down.Held {
		if h.Kind == action.HeldByBudget {
			waiting += h.Count
		}
	}
	gone := untilGone(snap)
	p.Wake(gone)
	if snap.OrderedReady() && (going+waiting > 0 || gone > 0) { // the others go in their turn
		waiting = len(condemned) - going
	}
	free := max(0, w.Missing-going-waiting)
	if free == 0 && going == 0 && waiting > 0 {
		wait := starting(snap)
		p.Wake(wait)
		if wait == 0 {
			free = 1
		}
	}
	if w.Missing == 0 && going+waiting == 0 { // the places are those of surge
		free = len(w.Places)
	}
	if free < len(w.Places) {
		p.Hold(action.HeldByOrder, condemned[0].Pod.Name, "its ordinal is out of range; it must be deleted before another pod is created")
	}
	return min(len(w.Places), free)
}

// untilGone returns for how long a new pod waits for one that was scaled down and terminates, at most a minute.
func untilGone(snap *snapshot.Set) (left time.Duration) {
	for r := range snap.Unsteady() {
		if r.Terminating && snap.Condemned(r) && !r.Surge {
			left = max(left, r.OnItsWay(snap.Now))
		}
	}
	return left
}

// starting returns for how long the pods that stay and are not available yet are still waited for.
func starting(snap *snapshot.Set) (wait time.Duration) {
	for r := range snap.Unsteady() {
		switch {
		case r.Pod == nil || r.Available || r.Finished || snap.Condemned(r):
		case r.Terminating:
			wait = max(wait, r.OnItsWay(snap.Now))
		default:
			wait = max(wait, snapshot.Patience-snap.Now.Sub(r.UnavailableSince()))
		}
	}
	return wait
}
