// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// processes are those that run the controller.
type processes struct {
	world *World
	// Managers run at the same time. leaders counts all that there were.
	Managers []*Manager
	leaders  int
	scheme   *runtime.Scheme
	// trim, if not nil, trims the pods in the managers' caches.
	trim func(any) (any, error)
}

// overlap is the longest time for which a leader does not know that it was replaced: the duration of a lease.
const overlap = 15 * time.Second

// AddManager starts another manager. All managers work at the same time, as when a leader does not know yet that it was
// replaced.
func (p *processes) AddManager(ctx context.Context) {
	m := &Manager{Process: simulator.Process{Name: managerActor}}
	if p.leaders++; p.leaders > 1 {
		m.Name = fmt.Sprintf("%s-%d", managerActor, p.leaders)
	}
	p.Managers = append(p.Managers, m)
	p.start(ctx, m, p.world.Store.Version())
}

// endOverlap lets all managers but the last one learn that they were replaced, and end.
func (p *processes) endOverlap(ctx context.Context) error {
	if len(p.Managers) < 2 {
		return nil
	}
	if err := p.world.Run(ctx, overlap); err != nil {
		return err
	}
	p.Managers = p.Managers[len(p.Managers)-1:]
	return nil
}

// Restart ends a manager's process and starts it again. Its caches begin with the store at a version, because an API
// server that lags behind may answer the first list.
func (p *processes) Restart(ctx context.Context, m *Manager, version int64) {
	p.world.Film.note(m.Name, "restarts")
	p.start(ctx, m, version)
}

// start starts a manager with an empty memory, an empty queue, and the real controller wired to the simulated world.
func (p *processes) start(ctx context.Context, m *Manager, version int64) {
	w := p.world
	view := apiserver.NewView(w.Store)
	view.Trim = p.trim
	if w.Chance != nil {
		view.Order = w.Chance.Shuffle
	}
	faults := apiserver.FaultPlan(nil)
	if m.Client != nil {
		faults = m.Client.Faults
	}
	m.Client = apiserver.NewClient(view, m.Name, p.scheme)
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
func (p *processes) Resync() {
	for _, m := range p.Managers {
		m.Queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: Namespace, Name: SetName}})
	}
}

// managerTurns adds the deliveries to a manager's caches and the work in its queue.
func (p *processes) managerTurns(m *Manager, add func(turn)) {
	for _, kind := range apiserver.Kinds() {
		if m.Client.Next(kind) != nil {
			add(turn{who: m.Name, about: string(kind), at: p.world.network.delivers(p.world.Now()), take: func(ctx context.Context) error {
				p.deliver(ctx, m, kind)
				return nil
			}})
		}
	}
	at, ok := m.Queue.Next()
	if err := m.starved(); err != nil && p.world.checker.Violation == nil {
		p.world.checker.Violation = err
	}
	if ok {
		add(turn{who: m.Name, at: at, take: func(ctx context.Context) error { return p.work(ctx, m) }})
	}
}

// deliver delivers one event to a manager, or at times all remaining ones at once, as after a broken watch.
func (p *processes) deliver(ctx context.Context, m *Manager, kind apiserver.Kind) {
	if p.world.Chance != nil && m.Client.Lag(kind) > 1 && p.world.Chance.IntN(8) == 0 {
		for _, e := range m.Client.Relist(kind, p.world.Store.Version()) {
			m.Dispatch(ctx, e)
		}
		return
	}
	m.Dispatch(ctx, m.Client.Deliver(kind))
}

// work lets a manager reconcile once, and restarts it if it crashes.
func (p *processes) work(ctx context.Context, m *Manager) error {
	w := p.world
	m.Take()
	if err := m.judge(); err != nil {
		return err
	}
	w.refusals.hung = false
	w.checker.Begin(&invariants.Reconcile{
		Manager: m.Name,
		Set:     apiserver.Key{Kind: apiserver.RollSets, Namespace: m.Working.Namespace, Name: m.Working.Name},
		View:    m.Client.View,
		Clock:   m.Clock,
		Born:    m.born,
	})
	err := m.work(w.Film.withLog(ctx), &w.refusals.hung)
	crashed := errors.Is(err, simulator.ErrCrashed)
	if crashed {
		w.checker.Crash()
	}
	w.checker.End()
	if crashed {
		if w.neighbors.noisy+w.neighbors.hanging == 0 { // beside these it crashes again and again
			w.crashed = w.Now()
		}
		w.Film.note(m.Name, "crashes")
		p.start(ctx, m, w.Store.Version())
		return nil
	}
	return err
}
