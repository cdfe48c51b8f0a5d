// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package scale plans the number of pods: which to create, and which to delete because they are surplus or finished.
//
// The rule: failed and succeeded pods are deleted, after a back-off if they keep ending soon after they started. Surplus
// pods are deleted, the least useful first; available ones only while more than spec.replicas pods are available. Places
// without a pod are filled, all at once, or in order if the set asks for it. Package desired decides which revision a place
// gets. Package update moves pods between revisions.
package scale

import (
	"slices"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Plan returns what to create and what to delete so that the set has the pods it should have.
func Plan(o *snapshot.Set, w *desired.State) action.Plan {
	p := action.Plan{EveryHold: o.EveryHold}
	removeFinished(o, w, &p)
	switch {
	case w.Surplus+w.SurplusSurge == 0:
	case o.Ordinal():
		removeCondemned(o, w, &p)
	default:
		removeVictims(o, w, &p)
	}
	if len(w.Places) > 0 {
		grow(o, w, &p)
	}
	return p
}

// removeFinished deletes pods that have failed or succeeded, so that their places are filled again. A pod that ended soon
// after it started, and would come back unchanged, waits for the back-off.
func removeFinished(o *snapshot.Set, w *desired.State, p *action.Plan) {
	for r := range o.Unsteady() {
		if r.Pod == nil || !r.Finished || r.Terminating {
			continue
		}
		if back, _ := w.ComesBackAt(o, r); o.FinishedWait > 0 && back == r.Revision && podstate.EndedSoon(r.Pod, o.Now) {
			p.Hold(action.HeldByBackOff, r.Pod.Name, "the pod has ended (%s) and is replaced after a back-off", r.Pod.Status.Phase)
			p.Wake(o.FinishedWait)
			continue
		}
		p.Add(action.Delete{Pod: r.Pod, Cause: action.Finished, Reason: "ended: " + string(r.Pod.Status.Phase)})
	}
}

// grow fills the places that nothing holds.
func grow(o *snapshot.Set, w *desired.State, p *action.Plan) {
	if old := firstOld(o); old != nil {
		p.Hold(action.HeldByOldPods, old.Pod.Name, "updateStrategy Recreate: no new pod before the last at revision %s is gone", old.Revision)
		return
	}
	room, limit := room(o, w, p), newLimit(o, w)
	for _, place := range w.Places {
		if room == 0 {
			return
		}
		if !held(o, place, p) && !limit.holds(place, p) {
			room--
			p.Add(action.Create{ID: place.ID, Revision: place.Revision, Surge: place.Surge && o.GivesBack(), Reason: reason(place)})
		}
		if o.OrderedReady() {
			return // the next one when this one is available
		}
	}
}

// held holds a place that cannot be filled now.
func held(o *snapshot.Set, place desired.Place, p *action.Plan) bool {
	if b, blocked := o.Blocked[place.ID]; blocked {
		p.Hold(kindOf(b), o.PodName(place.ID), "%s", b.Reason)
		p.Wake(b.Retry)
		return true
	}
	if why := o.LostClaim(place.ID, place.Revision); why != "" {
		p.Hold(action.HeldByClaim, o.PodName(place.ID), "%s", why)
		return true
	}
	return heldByRefusal(o, place, p) || o.OrderedReady() && heldByOrder(o, place, p)
}

// heldByRefusal holds a place whose pod was refused a moment ago: because of its template, because of a quota that all pods
// share, or for itself alone. Where the last pod was accepted and altered, a dry run comes before the next one.
func heldByRefusal(o *snapshot.Set, place desired.Place, p *action.Plan) bool {
	if answer := o.Preflights[place.Revision]; answer.Refuses() && answer.Retry > 0 || answer.Altered && answer.Refusal != "" {
		if ask := (action.Preflight{Revision: place.Revision}); answer.Retry <= 0 && !slices.Contains(p.Actions, action.Action(ask)) {
			p.Add(ask)
		}
		p.Hold(action.HeldByPreflight, o.PodName(place.ID), "the API server refuses pods of revision %s: %s", place.Revision, answer.Refusal)
		p.Wake(answer.Retry)
		return true
	}
	for _, k := range []attempt.Key{attempt.AnyCreate(), {Verb: attempt.Creating, Object: place.ID}} {
		if o.LeavesAside(k) {
			p.LeaveAside(o, k, o.PodName(place.ID))
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
func firstOld(o *snapshot.Set) *snapshot.Replica {
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Pod != nil && desired.IsOld(o, r) {
			return r
		}
	}
	return nil
}

// room returns how many pods may be created now, and adds the holds for the others.
func room(o *snapshot.Set, w *desired.State, p *action.Plan) int {
	room := len(w.Places)
	if o.Ordinal() { // pods out of range count until they are gone
		free := max(0, o.Limits.Replicas-o.Active())
		if free < room && len(w.Condemned) > 0 {
			p.Hold(action.HeldByOrder, w.Condemned[0].Pod.Name, "its ordinal is out of range; it must be deleted before another pod is created")
		}
		room = min(room, free)
	}
	return room
}
