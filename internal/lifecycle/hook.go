// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle lets other programs take part in the life of pods, by labels and finalizers that they set and remove.
//
// The rule: a pod that carries a mark of the hook preDelete is not deleted, and one with a mark of inPlaceUpdate has no
// container restarted by an update, until the marks are gone; after such an update, and after its creation under
// preNormal, it is not available until it carries all of them. What the containers do not notice waits for nobody. Where
// a pod stands is written in a label, and only in sets that use the hook in question: without a hook the label means
// nothing, so that taking it out of the spec lets every pod go.
package lifecycle

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1alpha1"
)

// hook is one hook of a set, under its name in the spec.
type hook struct {
	name string
	*v1alpha1.LifecycleHook
}

// hookOf returns the hook that a state belongs to; its LifecycleHook is nil if the set does not use it.
func hookOf(spec *v1alpha1.RollSetSpec, state v1alpha1.LifecycleState) hook {
	if spec.Lifecycle == nil {
		return hook{}
	}
	switch state {
	case v1alpha1.LifecyclePreparingNormal:
		return hook{"preNormal", spec.Lifecycle.PreNormal}
	case v1alpha1.LifecyclePreparingUpdate, v1alpha1.LifecycleUpdating, v1alpha1.LifecycleUpdated:
		return hook{"inPlaceUpdate", spec.Lifecycle.InPlaceUpdate}
	case v1alpha1.LifecyclePreparingDelete:
		return hook{"preDelete", spec.Lifecycle.PreDelete}
	case v1alpha1.LifecycleNormal:
	}
	return hook{}
}

// StateOf is where a pod stands as to the hooks that its set uses now; empty where none has anything to say.
func StateOf(spec *v1alpha1.RollSetSpec, pod *corev1.Pod) v1alpha1.LifecycleState {
	if spec.Lifecycle == nil {
		return ""
	}
	state := v1alpha1.LifecycleState(pod.Labels[v1alpha1.LifecycleStateLabel])
	if hookOf(spec, state).LifecycleHook == nil {
		return ""
	}
	return state
}

// First is the state in which a pod is created; empty if it waits for nothing.
func First(spec *v1alpha1.RollSetSpec, pod *corev1.Pod) v1alpha1.LifecycleState {
	h := hookOf(spec, v1alpha1.LifecyclePreparingNormal)
	if h.LifecycleHook == nil || h.missing(pod) == "" {
		return ""
	}
	return v1alpha1.LifecyclePreparingNormal
}

// Withdraws says whether pods of a set, or of one that stands at a given state, are taken out of service while they wait.
func Withdraws(spec *v1alpha1.RollSetSpec, states ...v1alpha1.LifecycleState) bool {
	return slices.ContainsFunc(states, func(state v1alpha1.LifecycleState) bool {
		h := hookOf(spec, state)
		return h.LifecycleHook != nil && h.MarkPodNotReady
	})
}

// Waits says what a pod waits for in its state; empty if for nothing.
func Waits(spec *v1alpha1.RollSetSpec, pod *corev1.Pod) string {
	state := StateOf(spec, pod)
	h := hookOf(spec, state)
	switch state {
	case v1alpha1.LifecyclePreparingNormal, v1alpha1.LifecycleUpdated:
		if mark := h.missing(pod); mark != "" {
			return "lifecycle hook " + h.name + " waits for " + mark
		}
	case v1alpha1.LifecyclePreparingUpdate, v1alpha1.LifecyclePreparingDelete:
		if mark := h.present(pod); mark != "" {
			return h.waitsToLose(mark)
		}
	case v1alpha1.LifecycleNormal, v1alpha1.LifecycleUpdating:
	}
	return ""
}

func (h hook) waitsToLose(mark string) string {
	return "lifecycle hook " + h.name + " waits until " + mark + " is gone"
}

// present is the first mark of the hook that a pod carries; empty if it carries none.
func (h hook) present(pod *corev1.Pod) string { return h.first(pod, carried) }

// missing is the first mark of the hook that a pod does not carry; empty if it carries all of them.
func (h hook) missing(pod *corev1.Pod) string { return h.first(pod, lacking) }

// match tells marks that are looked for from others.
type match func(carries bool) bool

func carried(carries bool) bool { return carries }

func lacking(carries bool) bool { return !carries }

// first is the first mark of the hook that matches, labels before finalizers, in order.
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
