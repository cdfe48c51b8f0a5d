// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/action"
	"rollset.dev/rollset/internal/inplace"
	"rollset.dev/rollset/internal/observed"
	"rollset.dev/rollset/internal/podstate"
	"rollset.dev/rollset/internal/wanted"
)

// step is the next step of a change in place, or nil if it has to be waited for, which the plan says then. Which one it is
// follows from the pod alone, so that whoever comes after a crash goes on where it was left: a pod in service is taken out
// by its gate, then the grace period passes, then one patch makes it a pod of the new revision. What has to be done after
// that is for settle to say. It fails if there is no such patch, before the pod is taken out of service for it.
//
// A pod whose containers do not run well has no traffic to lose; it is patched at once. One whose gate was opened, by
// whomever, is about to get traffic though it is not ready yet; the grace period begins anew.
func (v *mover) step(m wanted.Move, how manner) (action.Action, error) {
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
	if _, err := inplace.Patch(r.Pod, *how.change, m.To); err != nil {
		return nil, err
	}
	if closes {
		return action.CloseGate{Pod: r.Pod, Reason: "update in place to " + m.To}, nil
	}
	return action.UpdateInPlace{Pod: r.Pod, Revision: m.To, Change: *how.change}, nil
}

// graceLeft is how long a pod must still be out of service before its containers are touched.
func (v *mover) graceLeft(r *observed.Replica) time.Duration {
	strategy := v.set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy
	if strategy == nil || strategy.GracePeriodSeconds <= 0 || !r.Gate.Closed() {
		return 0
	}
	// The API keeps whole seconds, so that the gate may have been closed up to one second later.
	grace := time.Duration(strategy.GracePeriodSeconds)*time.Second + time.Second
	return min(grace, r.Gate.Since.Add(grace).Sub(v.set.Now))
}

// settle brings the pods that are at their revision to the end of their last change in place, and into service.
func (v *mover) settle(w *wanted.State, scaling action.Plan) {
	deleted := map[types.UID]bool{}
	for _, a := range slices.Concat(scaling.Actions, v.plan.Actions) {
		if d, ok := a.(action.Delete); ok {
			deleted[d.Pod.UID] = true
		}
	}
	candidates := w.Candidates // in the order of the replicas
	for i := range v.set.Replicas {
		r := &v.set.Replicas[i]
		if len(candidates) > 0 && candidates[0].Replica == r {
			candidates = candidates[1:]
			continue
		}
		switch {
		case !r.Live(), r.Infeasible != "" && !r.AskAgain, deleted[r.Pod.UID]:
		case r.Waiting != "":
			v.resize(r)
		default:
			v.leave(r)
		}
	}
}

// leave lets a pod serve that is not moved now, unless a change of it is under way or a lifecycle hook is waited for that
// has nothing to do with moves.
func (v *mover) leave(r *observed.Replica) {
	withdrawn := r.Withdrawn && r.State != v1alpha1.LifecyclePreparingUpdate
	if r.Gate.Passable() || r.Waiting != "" || withdrawn {
		return
	}
	v.plan.Add(action.OpenGate{Pod: r.Pod, Reason: "up to date with " + r.Revision})
}

// resize asks for the resources of a pod's revision if the patch that made it one of that revision is not followed by
// that yet.
func (v *mover) resize(r *observed.Replica) {
	template := v.set.Known[r.Revision]
	if len(r.InPlace.Resized) == 0 || template == nil {
		return
	}
	if patch, err := inplace.ResizePatch(r.Pod, template, r.InPlace.Resized); err == nil && patch != nil {
		v.plan.Add(action.Resize{Pod: r.Pod, Revision: r.Revision, Patch: patch})
	}
}

// giveUp recreates the pods that cannot get the resources of their revision where they are, or holds them.
func (v *mover) giveUp() {
	for i := range v.set.Replicas {
		r := &v.set.Replicas[i]
		if !r.Live() || r.Infeasible == "" || wanted.Frozen(v.set) {
			continue
		}
		m, how := wanted.Move{Replica: r, To: r.Revision}, manner{cannot: "resize: " + r.Infeasible}
		if !v.held(m, how) {
			v.spend(m, how)
			v.plan.Add(deletion(m, how.cannot))
		}
	}
}
