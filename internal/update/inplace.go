// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// inPlaceSteps plans the next steps of updates in place that were begun.
type inPlaceSteps struct{ *mover }

// step returns the next action of a change in place, or nil with a hold in the plan if it must wait. The gate takes a pod
// out of service, then the grace period passes, then one patch makes it a pod of the new revision; settle does the rest.
// step depends only on the pod, so a restarted manager resumes where the last one stopped. It fails if there is no such
// patch, before the pod is taken out of service for it.
//
// A pod whose containers do not run well has no traffic to lose, and is patched at once. A pod whose gate was opened by
// another client is about to get traffic although it is not ready yet, so its grace period starts again.
func (v inPlaceSteps) step(m desired.Candidate, how method) (action.Action, error) {
	r := m.Replica
	serving := how.change.NeedsRestart() && r.Gate.Declared && podstate.ContainersReady(r.Pod)
	closes := serving && r.Gate.Status == corev1.ConditionTrue && (r.Ready || podstate.Returning(r.Pod))
	if serving && !closes {
		if r.Ready {
			v.plan.Hold(action.HeldByGrace, r.Pod.Name, "its node has not seen yet that it is out of service")
			return nil, nil
		}
		if wait := v.graceLeft(r); wait > 0 {
			v.plan.Hold(action.HeldByGrace, r.Pod.Name, "out of service for gracePeriodSeconds before its containers are touched")
			v.plan.Wake(wait)
			return nil, nil
		}
	}
	change := *how.change
	change.Restarted, change.Resized = r.Progress.Restart == "", r.Progress.Resize == ""
	if _, err := inplace.Patch(r.Pod, change, m.To); err != nil {
		return nil, err
	}
	if closes {
		return action.CloseGate{Pod: r.Pod, Reason: "update in place to " + m.To}, nil
	}
	return action.UpdateInPlace{Pod: r.Pod, Revision: m.To, Change: change}, nil
}

// graceLeft returns how long a pod must still be out of service before its containers are touched.
func (v inPlaceSteps) graceLeft(r *snapshot.Replica) time.Duration {
	strategy := v.snap.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy
	if strategy == nil || strategy.GracePeriodSeconds <= 0 || !r.Gate.Closed() {
		return 0
	}
	// The API keeps whole seconds, so the gate may have been closed up to one second later.
	grace := time.Duration(strategy.GracePeriodSeconds)*time.Second + time.Second
	return min(grace, r.Gate.Since.Add(grace).Sub(v.snap.Now))
}

// settle completes the last change in place of pods that are at their revision. It also puts every pod back into service
// that is not being moved now: a pod that waits to be moved serves until then.
func (v inPlaceSteps) settle(w *desired.State) {
	isCandidate := map[*snapshot.Replica]bool{}
	for _, m := range w.Candidates {
		if !m.Replica.Steady {
			isCandidate[m.Replica] = true
		}
	}
	for r := range v.snap.Unsteady() {
		switch {
		case !r.Active(), v.moving[r.Pod], w.Goes(r):
			continue
		case r.Progress.Resize != "" && !isCandidate[r] && (r.Infeasible == "" || r.AskAgain):
			v.resize(r)
		case r.Progress.Passing && r.Gate.Passable(): // the proof may not be there later
			change := inplace.Change{Restarted: true, Resized: r.Progress.Resize == ""}
			v.plan.Add(action.UpdateInPlace{Pod: r.Pod, Revision: r.Revision, Change: change})
		}
		v.leave(r)
	}
}

// leave lets a pod serve that is not moved now, unless its containers are about to restart or it waits for a lifecycle hook
// that is not about moves. A pod that waits for resources keeps serving.
func (v inPlaceSteps) leave(r *snapshot.Replica) {
	withdrawn := r.Withdrawn && r.State != v1beta1.LifecyclePreparingUpdate
	if r.Gate.Passable() || r.Restarting || withdrawn {
		return
	}
	v.plan.Add(action.OpenGate{Pod: r.Pod, Reason: "up to date with " + r.Revision})
}

// resize asks for the resources of a pod's revision if the patch to that revision has not been followed by a resize yet.
func (v inPlaceSteps) resize(r *snapshot.Replica) {
	template := v.snap.Known[r.Revision].Template
	if len(r.InPlace.Resized) == 0 || template == nil {
		return
	}
	patch, err := inplace.ResizePatch(r.Pod, template, r.InPlace.Resized)
	if err != nil || patch == nil {
		return
	}
	if k := attempt.OfPod(attempt.Resizing, r.Pod); v.snap.LeavesAside(k) && v.snap.Refusal(k).ByRule {
		v.plan.LeaveAside(v.snap, k, r.Pod.Name)
		return
	}
	v.plan.Add(action.Resize{Pod: r.Pod, Revision: r.Revision, Patch: patch, Change: r.InPlace.String()})
}

// reasonToGiveUp returns why a pod cannot be brought to its revision in place; empty if it can.
func reasonToGiveUp(r *snapshot.Replica) string {
	if r.Infeasible != "" {
		return "resize: " + r.Infeasible
	}
	return r.Unproven
}

// giveUp recreates or holds the pods that cannot get the resources of their revision where they are, and those not known to
// run its images.
func (v inPlaceSteps) giveUp(w *desired.State) {
	for r := range v.snap.Unsteady() {
		if !r.Active() || w.Goes(r) || v.moving[r.Pod] || desired.Frozen(v.snap) {
			continue
		}
		v.plan.Wake(r.ProofWait)
		cannot := reasonToGiveUp(r)
		if cannot == "" {
			continue
		}
		m, how := desired.Candidate{Replica: r, To: r.Revision}, method{cannot: cannot}
		if r.ServesUnproven() && !v.budget.allows(r) {
			v.plan.Hold(action.HeldByBudget, r.Pod.Name, "%s; it is recreated when enough other pods are available", cannot)
			continue
		}
		if !v.cannot(m, how) && !v.held(m, how) {
			v.spend(m, how)
			v.moving[r.Pod] = true
			v.plan.Add(deletion(m, how.cannot))
		}
	}
}
