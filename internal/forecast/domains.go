// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
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

// domainsOf returns, for each node, the label with the failure domain that its pods have. A new pod on that node gets it.
func domainsOf(pods []*corev1.Pod, key string) map[string]map[string]string {
	if key == "" {
		return nil
	}
	labels := map[string]map[string]string{}
	for _, pod := range pods {
		if value, ok := pod.Labels[key]; ok && pod.Spec.NodeName != "" {
			labels[pod.Spec.NodeName] = map[string]string{key: value}
		}
	}
	return labels
}
