// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Leaving returns why a node leaves: it is cordoned, or has a taint with one of the keys that keeps new pods away. It is empty
// if the node stays.
func Leaving(node *corev1.Node, keys []string) string {
	if node.Spec.Unschedulable {
		return "node " + node.Name + " is cordoned"
	}
	if i := slices.IndexFunc(node.Spec.Taints, func(t corev1.Taint) bool { return keepsAway(t) && slices.Contains(keys, t.Key) }); i >= 0 {
		return "node " + node.Name + " has the taint " + node.Spec.Taints[i].Key
	}
	return ""
}

// keepsAway reports whether a taint keeps new pods away from a node.
func keepsAway(t corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// Tolerates reports whether a pod may be scheduled to a node, as far as cordons and taints decide that.
func Tolerates(pod *corev1.PodSpec, node *corev1.Node) bool {
	return toleratesCordon(pod, node) && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return keepsAway(t) && !tolerates(pod, t) })
}

// ComesBack reports whether the successor of a pod could get the pod's node although that leaves: the pod tolerates a cordon, or
// all of these taints of the node.
func ComesBack(pod *corev1.PodSpec, node *corev1.Node, keys []string) bool {
	return toleratesCordon(pod, node) && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return keepsAway(t) && slices.Contains(keys, t.Key) && !tolerates(pod, t)
	})
}

// toleratesCordon reports whether a node is not cordoned, or a pod tolerates that.
func toleratesCordon(pod *corev1.PodSpec, node *corev1.Node) bool {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	return !node.Spec.Unschedulable || tolerates(pod, cordon)
}

// tolerates reports whether a pod tolerates a taint, by the rules of the scheduler.
func tolerates(pod *corev1.PodSpec, taint corev1.Taint) bool {
	return slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
		value := t.Operator == corev1.TolerationOpExists || t.Value == taint.Value
		return (t.Key == "" || t.Key == taint.Key) && (t.Effect == "" || t.Effect == taint.Effect) && value
	})
}

// NodeReady reports whether a node is ready.
func NodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
