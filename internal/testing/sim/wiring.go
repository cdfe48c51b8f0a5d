// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// overlap is the longest time for which a leader does not know that it was replaced: the duration of a lease.
const overlap = 15 * time.Second

// AddManager starts another manager. All managers work at the same time, as when a leader does not know yet that it was
// replaced.
func (w *World) AddManager(ctx context.Context) {
	m := &Manager{Process: simulator.Process{Name: managerActor}}
	if w.leaders++; w.leaders > 1 {
		m.Name = fmt.Sprintf("%s-%d", managerActor, w.leaders)
	}
	w.Managers = append(w.Managers, m)
	w.start(ctx, m, w.Store.Version())
}

// endOverlap lets all managers but the last one learn that they were replaced, and end.
func (w *World) endOverlap(ctx context.Context) error {
	if len(w.Managers) < 2 {
		return nil
	}
	if err := w.Run(ctx, overlap); err != nil {
		return err
	}
	w.Managers = w.Managers[len(w.Managers)-1:]
	return nil
}

// Restart ends a manager's process and starts it again. Its caches begin with the store at a version, because an API
// server that lags behind may answer the first list.
func (w *World) Restart(ctx context.Context, m *Manager, version int64) {
	w.Film.note(m.Name, "restarts")
	w.start(ctx, m, version)
}

// start starts a manager with an empty memory, an empty queue, and the real controller wired to the simulated world.
func (w *World) start(ctx context.Context, m *Manager, version int64) {
	view := apiserver.NewView(w.Store)
	view.Trim = w.trim
	if w.Chance != nil {
		view.Order = w.Chance.Shuffle
	}
	faults := apiserver.FaultPlan(nil)
	if m.Client != nil {
		faults = m.Client.Faults
	}
	m.Client = apiserver.NewClient(view, m.Name, w.scheme)
	m.Client.Faults, m.Client.Tried, m.Client.Later = faults, w.checker.Tried, w.network.send
	m.Client.Rewritten = w.checker.Rewritten
	m.Client.Refused, m.Client.NoChange, m.Client.Network = w.refusals.of, w.checker.NoChange, w.network.fault
	w.checker.Restart(m.Name)
	m.born = w.Store.Version()
	m.Live = apiserver.NewLive(w.Store)
	m.Live.Network = w.network.unreadable
	m.Queue, m.waits = simulator.NewQueue(w.clock), waiting{}
	m.Clock = skewed{PassiveClock: w.clock, manager: m}
	m.Wire(ctx, simulator.Runner(w.Chance), m.ahead)
	for _, kind := range apiserver.Kinds() {
		for _, e := range view.Relist(kind, min(version, m.behind(kind))) {
			m.Dispatch(ctx, e)
		}
	}
}

// Resync puts the set into the queue of every manager, as a periodic resync does.
func (w *World) Resync() {
	for _, m := range w.Managers {
		m.Queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: Namespace, Name: SetName}})
	}
}
