// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle lets other programs take part in the life of pods, by labels and finalizers that they set and remove.
//
// The rule: a pod that carries a mark of the hook preDelete is not deleted until its marks are gone. A pod that carries a
// mark of inPlaceUpdate has no container restarted by an update until its marks are gone. After such an update, and after
// its creation under preNormal, a pod is not available until it carries all marks. An update that restarts no container waits
// for no hook. In sets that use a hook, a label holds the state of a pod. Without the hook the label has no effect, so removing a
// hook from the spec releases every pod. An annotation, written together with the label, has the time of the change. The limit of a
// hook is counted from it, also after restarts of the manager. A pod whose hook has passed its limit continues only if the hook
// says so, and never with a finalizer.
package lifecycle

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// hook is one hook of a set, under its name in the spec.
type hook struct {
	name string
	*v1beta1.LifecycleHook
}

// hookOf returns the hook that a state belongs to; its LifecycleHook is nil if the set does not use it.
func hookOf(spec *v1beta1.RollSetSpec, state v1beta1.LifecycleState) hook {
	if spec.Lifecycle == nil {
		return hook{}
	}
	switch state {
	case v1beta1.LifecyclePreparingNormal:
		return hook{"preNormal", spec.Lifecycle.PreNormal}
	case v1beta1.LifecyclePreparingUpdate, v1beta1.LifecycleUpdating, v1beta1.LifecycleUpdated:
		return hook{"inPlaceUpdate", spec.Lifecycle.InPlaceUpdate}
	case v1beta1.LifecyclePreparingDelete:
		return hook{"preDelete", spec.Lifecycle.PreDelete}
	case v1beta1.LifecycleNormal:
	}
	return hook{}
}

// StateOf returns the state of a pod under the hooks that its set uses now; empty if no hook concerns the pod.
func StateOf(spec *v1beta1.RollSetSpec, pod *corev1.Pod) v1beta1.LifecycleState {
	if spec.Lifecycle == nil {
		return ""
	}
	state := v1beta1.LifecycleState(pod.Labels[v1beta1.LifecycleStateLabel])
	if hookOf(spec, state).LifecycleHook == nil {
		return ""
	}
	return state
}

// First returns the state in which a pod is created; empty if it waits for nothing.
func First(spec *v1beta1.RollSetSpec, pod *corev1.Pod) v1beta1.LifecycleState {
	h := hookOf(spec, v1beta1.LifecyclePreparingNormal)
	if h.LifecycleHook == nil || h.missing(pod) == "" {
		return ""
	}
	return v1beta1.LifecyclePreparingNormal
}

// Withdraws reports whether pods of a set, or pods in the given states, are taken out of service while they wait.
func Withdraws(spec *v1beta1.RollSetSpec, states ...v1beta1.LifecycleState) bool {
	return slices.ContainsFunc(states, func(state v1beta1.LifecycleState) bool {
		h := hookOf(spec, state)
		return h.LifecycleHook != nil && h.MarkPodNotReady
	})
}

// present returns the first mark of the hook that a pod carries; empty if it carries none.
func (h hook) present(pod *corev1.Pod) string { return h.first(pod, carried) }

// missing returns the first mark of the hook that a pod lacks; empty if it carries all of them.
func (h hook) missing(pod *corev1.Pod) string { return h.first(pod, lacking) }

// match selects marks by whether a pod carries them.
type match func(carries bool) bool

func carried(carries bool) bool { return carries }

func lacking(carries bool) bool { return !carries }

// first returns the first mark of the hook that matches, labels before finalizers, in order.
func (h hook) first(pod *corev1.Pod, is match) string {
	for _, key := range slices.Sorted(maps.Keys(h.LabelsHandler)) {
		value, ok := pod.Labels[key]
		if is(ok && value == h.LabelsHandler[key]) {
			return "label " + key + "=" + h.LabelsHandler[key]
		}
	}
	for _, finalizer := range h.FinalizersHandler {
		if is(slices.Contains(pod.Finalizers, finalizer)) {
			return "finalizer " + finalizer
		}
	}
	return ""
}
