// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Hooks holds the hooks of a set while a plan is made for it.
type Hooks struct {
	set      *snapshot.Set
	replicas map[types.UID]*snapshot.Replica
	// prepared holds the pods whose pending deletion or update is still wanted.
	prepared map[types.UID]bool
	// asking is true if the plan asks the API server about a revision. The answer decides which pods are updated.
	asking bool
}

// New returns the hooks of a set.
func New(o *snapshot.Set) *Hooks {
	h := &Hooks{set: o, replicas: map[types.UID]*snapshot.Replica{}, prepared: map[types.UID]bool{}}
	if o.Spec.Lifecycle == nil {
		return h
	}
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Pod != nil {
			h.replicas[r.Pod.UID] = r
		}
	}
	return h
}

// Apply removes the actions that hooks hold from a plan, and adds the actions that prepare the pods for them.
func (h *Hooks) Apply(p action.Plan) action.Plan {
	if h.set.Spec.Lifecycle == nil {
		return p
	}
	applied := action.Plan{Held: p.Held, Aside: p.Aside, RequeueAfter: p.RequeueAfter, EveryHold: p.EveryHold}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case action.Delete:
			if !h.holds(a.Pod, v1alpha1.LifecyclePreparingDelete, &applied) {
				applied.Add(a)
			}
		case action.CloseGate:
			if !h.holds(a.Pod, v1alpha1.LifecyclePreparingUpdate, &applied) {
				applied.Add(a)
			}
		case action.UpdateInPlace:
			h.update(a, &applied)
		case action.Preflight:
			h.asking = true
			applied.Add(a)
		case action.Create, action.Adopt, action.Release, action.Relabel, action.Unmark, action.OpenGate, action.Resize,
			action.SetState, action.CreateClaims, action.OwnClaim, action.ExpandClaim, action.DeleteClaim:
			applied.Add(a)
		}
	}
	return applied
}

// update lets an update in place through if it restarts nothing, or if no hook holds it.
func (h *Hooks) update(a action.UpdateInPlace, p *action.Plan) {
	used := hookOf(h.set.Spec, v1alpha1.LifecycleUpdating).LifecycleHook != nil
	if !used || !a.Change.NeedsRestart() {
		p.Add(a)
		return
	}
	if !h.holds(a.Pod, v1alpha1.LifecyclePreparingUpdate, p) {
		a.Change = marked(a.Change, v1alpha1.LifecycleUpdating)
		p.Add(a)
	}
}

// marked returns a change that also writes a state.
func marked(c inplace.Change, state v1alpha1.LifecycleState) inplace.Change {
	c.Labels.Set = maps.Clone(c.Labels.Set)
	if c.Labels.Set == nil {
		c.Labels.Set = map[string]string{}
	}
	c.Labels.Set[v1alpha1.LifecycleStateLabel] = string(state)
	return c
}

// holds reports whether a hook holds an action on a pod. If so, it brings the pod to the state that prepares it, and takes
// it out of service if the hook asks for that.
func (h *Hooks) holds(pod *corev1.Pod, state v1alpha1.LifecycleState, p *action.Plan) bool {
	h.prepared[pod.UID] = true
	hook, r := hookOf(h.set.Spec, state), h.replicas[pod.UID]
	if hook.LifecycleHook == nil || r == nil {
		return false
	}
	mark := hook.present(pod)
	if mark == "" {
		return false
	}
	p.Hold(action.HeldByHook, pod.Name, "%s", hook.waitsToLose(mark))
	switch {
	case r.State != state:
		p.Add(action.SetState{Pod: pod, State: state, Reason: hook.waitsToLose(mark)})
	case hook.MarkPodNotReady && r.Gate.Declared && !r.Gate.Closed():
		p.Add(action.CloseGate{Pod: pod, Reason: hook.waitsToLose(mark)})
	case !hook.MarkPodNotReady && r.Gate.Closed() && !r.Restarting: // the gate was closed before the hook was added
		p.Add(action.OpenGate{Pod: pod, Reason: hook.waitsToLose(mark)})
	}
	return true
}

// Keep keeps the state of pods that no plan touches now although they are to be deleted or moved: pods out of range, which
// wait for each other; pods that are out of service for a grace period; and all pods to be moved while scaling removes pods.
func (h *Hooks) Keep(w *desired.State, scaling, update action.Plan) {
	if h.set.Spec.Lifecycle == nil {
		return
	}
	resting := map[string]bool{}
	for _, held := range update.Held {
		resting[held.Subject] = resting[held.Subject] || held.Kind == action.HeldByGrace
	}
	for _, r := range w.Condemned {
		h.prepared[r.Pod.UID] = true
	}
	rests := scaling.ScalesDown()
	for _, m := range w.Candidates {
		if resting[m.Replica.Pod.Name] || rests {
			h.prepared[m.Replica.Pod.UID] = true
		}
	}
}

// Settle advances the pods that no longer wait for anything. A pod whose deletion or update is no longer wanted goes back to
// Normal, unless it was marked not ready, because the program that prepared it has taken it apart.
func (h *Hooks) Settle() action.Plan {
	p := action.Plan{EveryHold: h.set.EveryHold}
	if h.set.Spec.Lifecycle == nil {
		return p
	}
	for i := range h.set.Replicas {
		r := &h.set.Replicas[i]
		if !r.Live() || h.prepared[r.Pod.UID] || h.asking && preparesToMove(r.State) {
			continue
		}
		if next, reason := h.next(r); next != "" {
			p.Add(action.SetState{Pod: r.Pod, State: next, Reason: reason})
		} else if r.Hook != "" {
			p.Hold(action.HeldByHook, r.Pod.Name, "%s", r.Hook)
		}
	}
	return p
}

// preparesToMove reports whether a pod in a state may be waiting to be moved to another revision.
func preparesToMove(s v1alpha1.LifecycleState) bool {
	return s == v1alpha1.LifecyclePreparingUpdate || s == v1alpha1.LifecyclePreparingDelete
}

// next returns the state that follows for a pod that no action concerns; empty if it stays the same.
func (h *Hooks) next(r *snapshot.Replica) (state v1alpha1.LifecycleState, reason string) {
	complete := hookOf(h.set.Spec, r.State).LifecycleHook != nil && hookOf(h.set.Spec, r.State).missing(r.Pod) == ""
	switch r.State {
	case v1alpha1.LifecyclePreparingNormal, v1alpha1.LifecycleUpdated:
		if complete {
			return v1alpha1.LifecycleNormal, "the hook has its marks"
		}
	case v1alpha1.LifecycleUpdating:
		switch {
		case r.Restarting:
		case complete:
			return v1alpha1.LifecycleNormal, "the update is done"
		default:
			return v1alpha1.LifecycleUpdated, "the update is done"
		}
	case v1alpha1.LifecyclePreparingUpdate:
		return v1alpha1.LifecycleNormal, "it is no longer to be updated"
	case v1alpha1.LifecyclePreparingDelete:
		if !r.Specified {
			return v1alpha1.LifecycleNormal, "it is no longer to be deleted"
		}
	case v1alpha1.LifecycleNormal:
	}
	return "", ""
}
