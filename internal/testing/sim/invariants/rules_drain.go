// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// keepsWhereNothingStays checks that no pod is deleted because its node leaves if no node is ready and stays, as far as the
// manager knows.
func keepsWhereNothingStays(v *verdict) string {
	if !v.deletesPod() || v.set == nil || v.pod() == nil {
		return ""
	}
	pod, update := v.pod(), v.world.VersionOf(&v.set.Spec.Template)
	if !v.isAvailable(pod) || !v.leaving(pod) || v.named(pod) || v.outside(pod) || isSurge(pod) {
		return ""
	}
	if v.world.Version(pod) != update || v.checker.outline.active > v.world.Limits(v.set).Replicas {
		return "" // outdated, or it may be surplus
	}
	for node := range v.view.Cache(apiserver.Nodes) {
		if n := apiserver.MustBe[*corev1.Node](node); leaves(n, v.set) == "" && isNodeReady(n) {
			return ""
		}
	}
	return "a pod is deleted although no node stays"
}

// leaving reports whether the node of a pod leaves and the set wants such pods replaced, as far as the manager knows.
func (v *verdict) leaving(pod *corev1.Pod) bool {
	if v.set.Spec.Disruption == nil || v.set.Spec.Disruption.OnDrain != v1beta1.ReplaceOnDrain {
		return false
	}
	node, _ := v.view.Cached(apiserver.Key{Kind: apiserver.Nodes, Name: pod.Spec.NodeName}).(*corev1.Node)
	return Leaves(node, pod, v.set)
}

// Leaves reports whether the node of a pod leaves, and the pod's successor cannot get it again.
func Leaves(node *corev1.Node, pod *corev1.Pod, set *v1beta1.RollSet) bool {
	return node != nil && leaves(node, set) != "" && !ToleratesAll(pod)
}

// leaves returns why a node leaves, as a set sees it; empty if it stays.
func leaves(node *corev1.Node, set *v1beta1.RollSet) string {
	taints := []string{"karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"}
	if d := set.Spec.Disruption; d != nil && d.DrainTaints != nil {
		taints = d.DrainTaints
	}
	if node.Spec.Unschedulable {
		return "cordoned"
	}
	for _, t := range node.Spec.Taints {
		if slices.Contains(taints, t.Key) {
			return t.Key
		}
	}
	return ""
}

// ToleratesAll reports whether a pod tolerates every taint. The pods of a world tolerate all or nothing.
func ToleratesAll(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "" && t.Operator == corev1.TolerationOpExists })
}

func isNodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// nodeOf returns the node of a pod; nil if it is unknown.
func (c *Cluster) nodeOf(pod *corev1.Pod) *corev1.Node {
	node, _ := c.Store.Get(apiserver.Key{Kind: apiserver.Nodes, Name: pod.Spec.NodeName}).(*corev1.Node)
	return node
}
