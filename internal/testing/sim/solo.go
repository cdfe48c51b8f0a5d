// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"rollset.dev/rollset/internal/testing/kubelet"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// Programs outside of this package run the real controller on a state of their own with a loaded store and a Solo. No
// checker judges it, and there is no film.

// ManagerActor is the name under which a Solo writes.
const ManagerActor = managerActor

// Solo is one manager on a store that the caller drives. It never crashes, and its writes meet no faults.
type Solo struct {
	manager *Manager
	store   *apiserver.Store
}

// NewSolo starts a manager whose caches show the store as it is.
func NewSolo(ctx context.Context, store *apiserver.Store, c clock.PassiveClock) *Solo {
	m := &Manager{Name: managerActor, clock: c, queue: NewQueue(c), born: store.Version()}
	m.Client = apiserver.NewClient(apiserver.NewView(store), m.Name, apiserver.NewScheme())
	m.Live = apiserver.NewLive(store)
	m.wire(ctx, runner(nil))
	for _, kind := range apiserver.Kinds() {
		for _, e := range m.Client.Relist(kind, store.Version()) {
			m.dispatch(ctx, e)
		}
	}
	return &Solo{manager: m, store: store}
}

// Deliver delivers one event to the caches, and reports whether there was one. After that, the log keeps no objects of
// that write.
func (s *Solo) Deliver(ctx context.Context) bool {
	for _, kind := range apiserver.Kinds() {
		if entry := s.manager.Client.Next(kind); entry != nil {
			s.manager.dispatch(ctx, s.manager.Client.Deliver(kind))
			entry.Old, entry.New = nil, nil
			return true
		}
	}
	return false
}

// Next returns the time at which the next request is due. It is not ok if there is none.
func (s *Solo) Next() (at time.Time, ok bool) { return s.manager.queue.Next() }

// Work lets the manager reconcile the request that is due first. There must be one.
func (s *Solo) Work(ctx context.Context) error {
	s.manager.take()
	return s.manager.work(ctx, new(false))
}

// Calm ends all chance: from now on there are no delays and no faults, no step is judged or promoted, and writes that
// were under way are committed. Managers and kubelets restart and know only what the API server knows.
func (w *World) Calm(ctx context.Context) {
	w.Chance, w.willing = nil, false
	clear(w.asleep)
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
func (*World) Nodes() []string {
	var names []string
	for i := range nodes {
		names = append(names, nodeName(i))
	}
	return names
}

// NodeLabels returns the labels that pods get from their nodes, by the names of nodes.
func (*World) NodeLabels() map[string]map[string]string {
	labels := map[string]map[string]string{}
	for i := range nodes {
		labels[nodeName(i)] = map[string]string{corev1.LabelTopologyZone: zoneOf(i)}
	}
	return labels
}
