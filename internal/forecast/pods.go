// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1alpha1"
)

// reasonNodeNotReady is the reason why the pods of an unreachable node are not ready.
const reasonNodeNotReady = "NodeNotReady"

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// readySince returns since when a pod has been ready.
func readySince(pod *corev1.Pod) (since time.Time, ready bool) {
	c := condition(pod, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionTrue {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// isLost reports whether the node of a pod is unreachable, so that nothing happens to the pod.
func isLost(pod *corev1.Pod) bool {
	c := condition(pod, corev1.PodReady)
	return c != nil && c.Status != corev1.ConditionTrue && c.Reason == reasonNodeNotReady
}

func isUnschedulable(pod *corev1.Pod) bool {
	c := condition(pod, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}

// gateClosed reports whether the gate of updates in place keeps a pod out of service.
func gateClosed(pod *corev1.Pod) bool {
	gated := slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == v1alpha1.InPlaceUpdateReady
	})
	c := condition(pod, v1alpha1.InPlaceUpdateReady)
	return gated && c != nil && c.Status == corev1.ConditionFalse
}
