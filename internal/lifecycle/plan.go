// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Hooks holds the hooks of a set while a plan is made for it.
type Hooks struct {
	snap     *snapshot.Set
	replicas map[types.UID]*snapshot.Replica
	// prepared holds the pods whose pending deletion or update is still wanted.
	prepared map[types.UID]bool
	// asking is true if the plan asks the API server about a revision. The answer decides which pods are updated.
	asking bool
}

// New returns the hooks of a set.
func New(snap *snapshot.Set) *Hooks {
	h := &Hooks{snap: snap, replicas: map[types.UID]*snapshot.Replica{}, prepared: map[types.UID]bool{}}
	if snap.Spec.Lifecycle == nil {
		return h
	}
	for i := range snap.Replicas {
		if r := &snap.Replicas[i]; r.Pod != nil {
			h.replicas[r.Pod.UID] = r
		}
	}
	return h
}

// Apply removes the actions that hooks hold from a plan, and adds the actions that prepare the pods for them.
func (h *Hooks) Apply(p action.Plan) action.Plan {
	if h.snap.Spec.Lifecycle == nil {
		return p
	}
	applied := action.Plan{Held: p.Held, Aside: p.Aside, RequeueAfter: p.RequeueAfter, EveryHold: p.EveryHold}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case action.Delete:
			h.delete(a, &applied)
		case action.CloseGate:
			if !h.holds(a.Pod, v1beta1.LifecyclePreparingUpdate, &applied) {
				applied.Add(a)
			}
		case action.UpdateInPlace:
			h.update(a, &applied)
		case action.Preflight:
			h.asking = true
			applied.Add(a)
		case action.Create, action.Adopt, action.Release, action.Relabel, action.Unmark, action.OpenGate, action.Resize,
			action.SetState, action.CreateClaims, action.OwnClaim, action.ChangeClaim, action.DeleteClaim,
			action.CreateBudget, action.UpdateBudget, action.DeleteBudget:
			applied.Add(a)
		}
	}
	return applied
}

// delete lets a deletion through if no hook holds it.
func (h *Hooks) delete(a action.Delete, p *action.Plan) {
	if h.holds(a.Pod, v1beta1.LifecyclePreparingDelete, p) {
		return
	}
	if a.Passed = h.waitIn(a.Pod, v1beta1.LifecyclePreparingDelete).passed(); a.Passed.Hook != "" {
		a.Reason += "; " + a.Passed.String()
	}
	p.Add(a)
}

// waitIn returns what a pod waits for, now that it is in a state or is to enter it.
func (h *Hooks) waitIn(pod *corev1.Pod, state v1beta1.LifecycleState) wait {
	return waitIn(h.snap.Spec, pod, state, h.snap.Now)
}

// update lets an update in place through if it restarts nothing, or if no hook holds it.
func (h *Hooks) update(a action.UpdateInPlace, p *action.Plan) {
	used := hookOf(h.snap.Spec, v1beta1.LifecycleUpdating).LifecycleHook != nil
	if !used || !a.Change.NeedsRestart() {
		p.Add(a)
		return
	}
	if !h.holds(a.Pod, v1beta1.LifecyclePreparingUpdate, p) {
		a.Passed = h.waitIn(a.Pod, v1beta1.LifecyclePreparingUpdate).passed()
		a.Change.Labels.Set = with(a.Change.Labels.Set, v1beta1.LifecycleStateLabel, string(v1beta1.LifecycleUpdating))
		a.Change.Annotations.Set = with(a.Change.Annotations.Set, v1beta1.LifecycleSinceAnnotation,
			Record(v1beta1.LifecycleUpdating, h.snap.Now, a.Passed))
		p.Add(a)
	}
}

// with returns a map with another entry. Plans share the map that it is given.
func with(shared map[string]string, key, value string) map[string]string {
	own := maps.Clone(shared)
	if own == nil {
		own = map[string]string{}
	}
	own[key] = value
	return own
}

// holds reports whether a hook holds an action on a pod. If so, it brings the pod to the state that prepares it, and takes
// it out of service if the hook asks for that. A pod that is in that state, and whose hook has passed its limit, may go on: it
// has been counted as out of service since it was prepared.
func (h *Hooks) holds(pod *corev1.Pod, state v1beta1.LifecycleState, p *action.Plan) bool {
	h.prepared[pod.UID] = true
	w, r := h.waitIn(pod, state), h.replicas[pod.UID]
	if w.mark == "" || r == nil || w.proceeds() {
		return false
	}
	p.Hold(w.kind(), pod.Name, "%s", w)
	p.Wake(w.left())
	switch {
	case r.State != state, w.unrecorded():
		p.Add(action.SetState{Pod: pod, State: state, Reason: w.String()})
	case w.MarkPodNotReady && r.Gate.Declared && !r.Gate.Closed():
		p.Add(action.CloseGate{Pod: pod, Reason: w.String()})
	case !w.MarkPodNotReady && r.Gate.Closed() && !r.Restarting: // the gate was closed before the hook was added
		p.Add(action.OpenGate{Pod: pod, Reason: w.String()})
	}
	return true
}

// Keep keeps the state of pods that no plan touches now although they are to be deleted or moved: pods out of range, which
// wait for each other; pods that were taken out of service for an update; all pods to be moved while scaling removes pods; pods
// whose move the API server refuses, if it has refused that of all others too, in the last half hour; and pods whose move met a
// conflict, until that counts as a refusal. Without an answer to a preflight it is not known whether a pod is to be moved.
func (h *Hooks) Keep(w *desired.State, update action.Plan) {
	if h.snap.Spec.Lifecycle == nil {
		return
	}
	unanswered := func(m desired.Candidate) bool { return h.snap.Preflights[m.To].Failed }
	h.asking = h.asking || slices.ContainsFunc(w.Candidates, unanswered)
	opened := map[types.UID]bool{}
	for _, a := range update.Actions {
		if open, ok := a.(action.OpenGate); ok {
			opened[open.Pod.UID] = true
		}
	}
	for _, r := range w.Going {
		h.prepared[r.Pod.UID] = true
	}
	h.keepUnproven()
	refused := func(m desired.Candidate) bool {
		_, unmovable := h.snap.Unmovable(m.Replica.Pod)
		return unmovable || h.snap.WasRefused(m.Replica.Pod)
	}
	stuck := !slices.ContainsFunc(w.Candidates, func(m desired.Candidate) bool { return !refused(m) })
	for _, m := range w.Candidates {
		r := m.Replica
		k, unmovable := h.snap.Unmovable(r.Pod)
		overtaken := unmovable && h.snap.Refusal(k).Overtaken
		if r.Gate.Closed() && !r.Restarting && !opened[r.Pod.UID] || w.Rests || stuck || overtaken {
			h.prepared[r.Pod.UID] = true
		}
	}
}

// keepUnproven keeps the state of pods that are prepared for their deletion while the manager waits for the proof of their update in
// place. A manager that has just started does not know for how long the one before it waited.
func (h *Hooks) keepUnproven() {
	for r := range h.snap.Unsteady() {
		if r.State == v1beta1.LifecyclePreparingDelete && r.ProofWait > 0 {
			h.prepared[r.Pod.UID] = true
		}
	}
}

// Settle advances the pods that no longer wait for anything. A pod whose deletion or update is no longer wanted goes back to
// Normal, unless it was marked not ready, because the program that prepared it has taken it apart.
func (h *Hooks) Settle() action.Plan {
	p := action.Plan{EveryHold: h.snap.EveryHold}
	if h.snap.Spec.Lifecycle == nil {
		return p
	}
	for i := range h.snap.Replicas {
		r := &h.snap.Replicas[i]
		if !r.Active() || h.prepared[r.Pod.UID] || h.asking && r.PreparesToMove() {
			continue
		}
		w := h.waitIn(r.Pod, r.State)
		if next := h.next(r, w); next.State != "" {
			next.Pod = r.Pod
			p.Add(next)
		} else if r.Hook != "" {
			p.Hold(w.kind(), r.Pod.Name, "%s", r.Hook)
			p.Wake(w.left())
		}
	}
	return p
}

// next returns the state that follows for a pod that no action concerns; its State is empty if it stays the same. The pod is
// left to the caller.
func (h *Hooks) next(r *snapshot.Replica, w wait) action.SetState {
	used := hookOf(h.snap.Spec, r.State)
	complete := used.LifecycleHook != nil && used.missing(r.Pod) == ""
	switch r.State {
	case v1beta1.LifecyclePreparingNormal, v1beta1.LifecycleUpdated:
		switch passed := w.passed(); {
		case complete:
			return action.SetState{State: v1beta1.LifecycleNormal, Reason: "the hook has its marks"}
		case passed.Hook != "":
			return action.SetState{State: v1beta1.LifecycleNormal, Reason: passed.String(), Passed: passed}
		case w.unrecorded():
			return action.SetState{State: r.State, Reason: w.String()}
		}
	case v1beta1.LifecycleUpdating:
		switch {
		case r.Restarting:
		case complete:
			return action.SetState{State: v1beta1.LifecycleNormal, Reason: "the update is done"}
		default:
			return action.SetState{State: v1beta1.LifecycleUpdated, Reason: "the update is done"}
		}
	case v1beta1.LifecyclePreparingUpdate:
		return action.SetState{State: v1beta1.LifecycleNormal, Reason: "it is no longer to be updated"}
	case v1beta1.LifecyclePreparingDelete:
		if !r.ToReplace() {
			return action.SetState{State: v1beta1.LifecycleNormal, Reason: "it is no longer to be deleted"}
		}
	case v1beta1.LifecycleNormal:
	}
	return action.SetState{}
}
