// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1alpha1"
)

// domainKey returns the label with the failure domain of a set's pods; empty if the set has no domains.
func domainKey(set *v1alpha1.RollSet) string {
	if set == nil || set.Spec.UpdateStrategy.RollingUpdate.Domains == nil {
		return ""
	}
	return set.Spec.UpdateStrategy.RollingUpdate.Domains.LabelKey
}

// domainsOf returns, for each node, the label with the failure domain that its pods have. A new pod on that node gets it. If no
// pod has a node yet, each of the assumed nodes is a domain.
func domainsOf(pods []*corev1.Pod, key string) map[string]map[string]string {
	if key == "" {
		return nil
	}
	labels := map[string]map[string]string{}
	if !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }) {
		for i, node := range nodesOf(nil) {
			labels[node] = map[string]string{key: string(rune('a' + i))}
		}
	}
	for _, pod := range pods {
		if value, ok := pod.Labels[key]; ok && pod.Spec.NodeName != "" {
			labels[pod.Spec.NodeName] = map[string]string{key: value}
		}
	}
	return labels
}
