// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/simulator/actors"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// nodesOf returns the names of the nodes that pods can be bound to: those of the pods, and the known ones that are ready. There
// is at least one.
func nodesOf(pods []*corev1.Pod, known []*corev1.Node) []string {
	var names []string
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			names = append(names, pod.Spec.NodeName)
		}
	}
	for _, node := range known {
		if podstate.NodeReady(node) {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return []string{"node-a", "node-b", "node-c"}
	}
	return names
}

// domainKey returns the label with the failure domain of a set's pods; empty if the set has no domains.
func domainKey(set *v1beta1.RollSet) string {
	if set == nil || set.Spec.UpdateStrategy.RollingUpdate.Domains == nil {
		return ""
	}
	return set.Spec.UpdateStrategy.RollingUpdate.Domains.LabelKey
}

// domainsOf returns, for each node, the label with the failure domain that its pods have. A new pod on that node gets it. The
// API server copies it from a known node. If no node is known, each of the assumed nodes is a domain.
func domainsOf(pods []*corev1.Pod, known []*corev1.Node, key string) map[string]map[string]string {
	if key == "" {
		return nil
	}
	labels := map[string]map[string]string{}
	if len(known) == 0 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }) {
		for i, node := range nodesOf(nil, nil) {
			labels[node] = map[string]string{key: string(rune('a' + i))}
		}
	}
	for _, node := range known {
		if value, ok := node.Labels[key]; ok {
			labels[node.Name] = map[string]string{key: value}
		}
	}
	for _, pod := range pods {
		if value, ok := pod.Labels[key]; ok && pod.Spec.NodeName != "" {
			labels[pod.Spec.NodeName] = map[string]string{key: value}
		}
	}
	return labels
}

// fit implements actors.Scheduler.
func (c *cluster) fit(pod *corev1.Pod) ([]string, *actors.Refusal) {
	nodes := c.nodesFor(pod)
	if why := cmp.Or(actors.MissingClaim(c.store, pod), c.Refuses(pod), c.noneOf(nodes)); why != "" {
		return nil, &actors.Refusal{Reason: corev1.PodReasonUnschedulable, Message: why}
	}
	return nodes, nil
}

// nodesFor returns the nodes that a pod tolerates. A node whose name alone is known takes every pod.
func (c *cluster) nodesFor(pod *corev1.Pod) []string {
	var names []string
	for _, name := range c.Nodes {
		if node, ok := c.store.Get(apiserver.Key{Kind: apiserver.Nodes, Name: name}).(*corev1.Node); !ok || podstate.Tolerates(&pod.Spec, node) {
			names = append(names, name)
		}
	}
	return names
}

// noneOf returns the scheduler's message if no node is left; empty if one is.
func (c *cluster) noneOf(nodes []string) string {
	if len(nodes) > 0 {
		return ""
	}
	return fmt.Sprintf("0/%d nodes are available: none stays and takes new pods.", len(c.Nodes))
}
