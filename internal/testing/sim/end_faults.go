// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/simulator/kubelet"
)

// EndFaults ends all chance: from now on there are no delays and no faults, no step is judged or promoted, and writes that
// were under way are committed. Managers and kubelets restart and know only what the API server knows.
func (w *World) EndFaults(ctx context.Context) {
	w.Chance, w.gates.open = nil, false
	clear(w.turns.asleep)
	for _, late := range w.network.sent {
		late.commit()
	}
	w.network.sent, w.network.outage = nil, time.Time{}
	w.kubelets.busy = time.Time{}
	for _, t := range w.kubelets.pods {
		t.unreported = nil
		if pod, ok := w.Store.Get(t.key).(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			t.memory, t.at, t.due = kubelet.Resume(w.kubelets.model, pod, w.Now())
		}
	}
	for _, m := range w.Managers {
		m.Client.Faults, m.Behind = nil, nil
		w.Restart(ctx, m, w.Store.Version())
	}
}

// Kubelet returns the model of the kubelets of the world.
func (w *World) Kubelet() kubelet.Model { return w.kubelets.model }

// Refuses returns the scheduler's message if no node fits a pod; empty if one does.
func (w *World) Refuses(pod *corev1.Pod) string { return w.scheduler.refuse(pod) }

// Nodes returns the names of the nodes of the world.
func (w *World) Nodes() []string { return slices.Sorted(maps.Keys(w.NodeLabels())) }

// NodeLabels returns the labels that pods get from their nodes, by the names of nodes.
func (*World) NodeLabels() map[string]map[string]string {
	labels := map[string]map[string]string{}
	for i := range nodes {
		labels[nodeName(i)] = map[string]string{corev1.LabelTopologyZone: zoneOf(i)}
	}
	return labels
}
