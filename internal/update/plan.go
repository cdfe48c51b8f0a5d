// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package update plans which pods are moved to another revision, and how.
//
// The rule: a pod that is not ready is broken. It is moved before any healthy one, and costs nothing. Any other pod is moved
// only if at least spec.replicas − maxUnavailable pods are available afterwards. A guard limits both: while maxUnavailable
// pods at the target revision are unavailable, no more are moved to it. So a bad template breaks that many pods and no more,
// and is corrected like any other. Every pod is judged before the budget is spent. No pod above, below or missing keeps a
// broken pod from being replaced. Where the set has failure domains, a healthy pod is moved only while no pod of another
// domain is unavailable.
package update

import (
	"maps"
	"slices"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Plan plans which pods to move now, and which changes in place to complete. It counts what the scale planner creates in the
// same reconcile. While the set rests, because surplus pods are being deleted, no pod in service is moved.
func Plan(snap *snapshot.Set, w *desired.State, scaling action.Plan) action.Plan {
	p := action.Plan{EveryHold: snap.EveryHold}
	v := newMover(snap, newBudget(snap, w, scaling), &p)
	if !v.budget.rests {
		holdFrozen(snap, &p)
	}
	v.moveDue(w)
	v.askAgain()
	inPlaceSteps{v}.giveUp(w)
	holdPartition(snap, w, &p)
	inPlaceSteps{v}.settle(w)
	return p
}

// moveDue makes moves in order as long as the budget lasts. A pod that cannot move takes no turn of those that can.
func (v *mover) moveDue(w *desired.State) {
	back, left := retreat{&v.budget}.tooMany()
	w.SendBack(v.snap, back)
	v.plan.Wake(left)
	due, short := counts(maps.Clone(w.Excess)), counts(maps.Clone(w.Short))
	movable := v.vetted(slices.Clone(w.Candidates))
	v.domains = newDomains(v.snap, w, movable)
	for _, c := range inOrder(v.snap, movable, v.domains) {
		revision := c.Replica.Revision
		// While scaling deletes pods, those that no revision lacks may be deleted next.
		surplus := v.budget.rests && !v.snap.Ordinal() && !c.Named && !short.take(c.To)
		if !surplus && (c.Named || due[revision] > 0) && v.move(*c.Candidate) && !c.Named {
			due[revision]--
		}
	}
}

// holdFrozen adds a hold for the pods that a pause or the strategy OnDelete keeps where they are.
func holdFrozen(snap *snapshot.Set, p *action.Plan) {
	if !desired.Frozen(snap) {
		return
	}
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		waits := r.Revision != snap.Update.Name && !r.ToReplace() || snap.Paused() && snap.Known[r.Revision].Template == nil
		if !r.Active() || !waits {
			continue
		}
		if snap.Paused() {
			p.Hold(action.HeldByPause, r.Pod.Name, "the rollout is paused")
		} else {
			p.Hold(action.HeldByOnDelete, r.Pod.Name, "updateStrategy OnDelete: it is updated when it is deleted")
		}
	}
}

// holdPartition adds a hold for a broken pod that the partition keeps at its revision.
func holdPartition(snap *snapshot.Set, w *desired.State, p *action.Plan) {
	if !snap.Rolling() || desired.Frozen(snap) {
		return
	}
	for r := range snap.Unsteady() {
		if r.Broken() && r.Revision == snap.Current.Name && !r.ToReplace() && w.Stays(snap, r) {
			p.Hold(action.HeldByPartition, r.Pod.Name, "it is not ready, and the partition keeps it at revision %s", r.Revision)
		}
	}
}

// counts are numbers that are used up.
type counts map[string]int

// take uses up one of k; false if there is none left.
func (c counts) take(k string) bool {
	if c[k] == 0 {
		return false
	}
	c[k]--
	return true
}
