// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// entries holds since when pods have been in their lifecycle states, on the clocks of those who wrote the states.
type entries struct {
	since map[types.UID]time.Time
	// at holds the same on the clock of the world, for those whose own clock is set back.
	at map[types.UID]time.Time
	// sent is when a manager sent a write that it has given up on.
	sent map[attempt]time.Time
	// back holds the generation of the set at which a pod went back to Normal while it was out of service for an update.
	back map[types.UID]int64
	// failed is when a fault of chance last kept a manager from writing a pod.
	failed map[apiserver.Key]time.Time
}

func newEntries() entries {
	return entries{
		since: make(map[types.UID]time.Time), at: make(map[types.UID]time.Time), sent: make(map[attempt]time.Time), back: make(map[types.UID]int64), failed: make(map[apiserver.Key]time.Time),
	}
}

// Entered returns since when a pod has been in its lifecycle state.
func (c *Checker) Entered(pod types.UID) time.Time { return c.entered.since[pod] }

// FailedByChance returns when a fault of chance last kept a manager from writing a pod. The next try waits as after a refusal.
func (c *Checker) FailedByChance(pod apiserver.Key) time.Time { return c.entered.failed[pod] }

// see records that a pod enters a state. Now is the time at which that was decided.
func (n entries) see(e *apiserver.Entry, now time.Time) {
	is, ok := e.New.(*corev1.Pod)
	if !ok {
		return
	}
	was, existed := e.Old.(*corev1.Pod)
	switch {
	case !existed:
		n.since[is.UID], n.at[is.UID] = e.At, e.At
	case stateOf(was) != stateOf(is):
		n.since[is.UID], n.at[is.UID] = now, e.At
	case was.Annotations[v1beta1.LifecycleSinceAnnotation] != is.Annotations[v1beta1.LifecycleSinceAnnotation]:
		n.since[is.UID] = now // another manager has another clock
	}
}

// arrives records that a pod enters a state by a write that no manager waits for any longer, or by another client. The former
// has the date of its own, and may undo that of a later attempt.
func (n entries) arrives(e *apiserver.Entry) {
	sent, late := n.sent[attemptOf(e.Write)]
	if !late {
		n.see(e, e.At)
		return
	}
	delete(n.sent, attemptOf(e.Write))
	n.see(e, sent)
	was, existed := e.Old.(*corev1.Pod)
	is, exists := e.New.(*corev1.Pod)
	if existed && exists && was.Annotations[v1beta1.LifecycleSinceAnnotation] != is.Annotations[v1beta1.LifecycleSinceAnnotation] {
		n.since[is.UID] = sent
	}
}

// stateOf returns the lifecycle state in the label of a pod.
func stateOf(pod *corev1.Pod) v1beta1.LifecycleState {
	return v1beta1.LifecycleState(pod.Labels[v1beta1.LifecycleStateLabel])
}

// WaitsFor returns the hook that a pod waits for in its state; nil if it waits for none.
func WaitsFor(set *v1beta1.RollSet, pod *corev1.Pod) *v1beta1.LifecycleHook {
	hooks := set.Spec.Lifecycle
	if hooks == nil {
		return nil
	}
	switch state := stateOf(pod); {
	case state == v1beta1.LifecyclePreparingNormal && lacksMark(hooks.PreNormal, pod):
		return hooks.PreNormal
	case state == v1beta1.LifecycleUpdated && lacksMark(hooks.InPlaceUpdate, pod):
		return hooks.InPlaceUpdate
	case state == v1beta1.LifecyclePreparingUpdate && hasMark(hooks.InPlaceUpdate, pod):
		return hooks.InPlaceUpdate
	case state == v1beta1.LifecyclePreparingDelete && hasMark(hooks.PreDelete, pod):
		return hooks.PreDelete
	default:
		return nil
	}
}

// hasMark reports whether a pod carries a label of a hook. The simulator gives no finalizers to hooks.
func hasMark(hook *v1beta1.LifecycleHook, pod *corev1.Pod) bool {
	if hook == nil {
		return false
	}
	for key, value := range hook.LabelsHandler {
		if v, ok := pod.Labels[key]; ok && v == value {
			return true
		}
	}
	return false
}

// lacksMark reports whether a pod lacks a label of a hook.
func lacksMark(hook *v1beta1.LifecycleHook, pod *corev1.Pod) bool {
	if hook == nil {
		return false
	}
	for key, value := range hook.LabelsHandler {
		if v, ok := pod.Labels[key]; !ok || v != value {
			return true
		}
	}
	return false
}

// waitsForHooks checks that no pod goes on while a hook holds it, unless it has waited for as long as the hook allows.
func waitsForHooks(v *verdict) string {
	pod := v.pod()
	if pod == nil || v.set == nil || v.set.Spec.Lifecycle == nil {
		return ""
	}
	if v.deletesPod() {
		if !hasMark(v.set.Spec.Lifecycle.PreDelete, pod) {
			return ""
		}
		if stateOf(pod) != v1beta1.LifecyclePreparingDelete {
			return "it is deleted, and was not prepared for that"
		}
		return v.checker.entered.mayGoOn(v, pod)
	}
	u, ok := v.update()
	if !ok || stateOf(u.before) != stateOf(pod) || WaitsFor(v.set, pod) == nil {
		return ""
	}
	switch before, after := stateOf(pod), stateOf(u.after); {
	case before == v1beta1.LifecyclePreparingUpdate && after == v1beta1.LifecycleUpdating:
		return v.checker.entered.mayGoOn(v, pod)
	case before == v1beta1.LifecyclePreparingUpdate, before == v1beta1.LifecyclePreparingDelete:
		return "" // it goes back
	case after == v1beta1.LifecycleNormal:
		return v.checker.entered.mayGoOn(v, pod)
	default:
		return "" // an updated pod is updated again
	}
}

// staysPrepared checks that no pod goes back to Normal while it rests, and is updated nevertheless: a program that prepared it would
// take its work back.
func staysPrepared(v *verdict) string {
	u, ok := v.update()
	if !ok || v.set.Spec.Lifecycle == nil {
		return ""
	}
	back := v.checker.entered.back
	generation, wentBack := back[u.after.UID]
	switch {
	case !IsUpdating(u.after):
		delete(back, u.after.UID)
	case stateOf(u.before) == v1beta1.LifecyclePreparingUpdate && stateOf(u.after) == v1beta1.LifecycleNormal:
		back[u.after.UID] = v.set.Generation
	case wentBack && generation == v.set.Generation && !u.sameImages():
		return "it is updated, and it went back to Normal while it was out of service for that"
	}
	return ""
}

// mayGoOn returns why a pod that a hook holds may not go on. Dates are in whole seconds.
func (n entries) mayGoOn(v *verdict, pod *corev1.Pod) string {
	hook, waited := WaitsFor(v.set, pod), max(v.now.Sub(n.since[pod.UID]), v.At.Sub(n.at[pod.UID]))
	switch {
	case hook.TimeoutSeconds == nil || hook.OnTimeout != v1beta1.ProceedOnTimeout:
		return fmt.Sprintf("it is %s and goes on, and its hook holds it", stateOf(pod))
	case waited <= time.Duration(*hook.TimeoutSeconds-1)*time.Second:
		return fmt.Sprintf("it is %s and goes on after %s, and the limit of its hook is %d seconds", stateOf(pod), waited, *hook.TimeoutSeconds)
	default:
		return ""
	}
}
