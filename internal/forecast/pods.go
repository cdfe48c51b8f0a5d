// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/podstate"
)

// reasonNodeNotReady is the reason why the pods of an unreachable node are not ready.
const reasonNodeNotReady = "NodeNotReady"

// isLost reports whether the node of a pod is unreachable, so that nothing happens to the pod.
func isLost(pod *corev1.Pod) bool {
	c := podstate.Condition(pod, corev1.PodReady)
	return c != nil && c.Status != corev1.ConditionTrue && c.Reason == reasonNodeNotReady
}

func isUnschedulable(pod *corev1.Pod) bool {
	c := podstate.Condition(pod, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}
