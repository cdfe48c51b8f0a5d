// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/internal/controller"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/controller/optional"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// overlap is the longest time for which a leader does not know that it was replaced: the duration of a lease.
const overlap = 15 * time.Second

// AddManager starts another manager. All managers work at the same time, as when a leader does not know yet that it was
// replaced.
func (w *World) AddManager(ctx context.Context) {
	m := &Manager{Name: managerActor}
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
	m.Client.Refused, m.Client.Vain, m.Client.Network = w.refused, w.checker.Vain, w.network.fault
	w.checker.Restart(m.Name)
	m.born = w.Store.Version()
	m.Live = apiserver.NewLive(w.Store)
	m.Live.Network = w.network.unreadable
	m.queue, m.waits = NewQueue(w.clock), waiting{}
	m.clock = skewed{PassiveClock: w.clock, manager: m}
	m.wire(ctx, runner(w.Chance))
	for _, kind := range apiserver.Kinds() {
		for _, e := range view.Relist(kind, min(version, m.behind(kind))) {
			m.dispatch(ctx, e)
		}
	}
}

// wire builds the controller and takes its indexes and its event handlers from it.
func (m *Manager) wire(ctx context.Context, run podcontrol.Runner) {
	if err := informer.IndexFields(ctx, m.Client.View); err != nil {
		apiserver.Unmodeled("indexes: %v", err)
	}
	m.expectations = expectations.New(m.clock)
	r := &controller.Reconciler{
		Client:       m.Client,
		Live:         m.Live,
		Pods:         m.Client.Pods(),
		Nodes:        informer.ListedNodes(m.Client),
		Watermarks:   func(kind schema.GroupKind, _ string) string { return m.Client.Synced(kind) },
		Optional:     func(client.Object) optional.Access { return optional.Access{Served: true} },
		Clock:        m.clock,
		ClockAhead:   m.ahead,
		Events:       &recorder{manager: m},
		Runner:       run,
		Expectations: m.expectations,
		Metrics:      metrics.New(prometheus.NewRegistry(), m.expectations),
		Line:         m.queue.Line,
	}
	m.reconciler = reconcile.AsReconciler(m.Client, r)
	m.handlers = make(map[apiserver.Kind]handler.EventHandler)
	for _, watch := range slices.Concat(r.Sources(), r.OptionalSources()) {
		m.handlers[apiserver.KeyOf(watch.Object).Kind] = watch.Handler
	}
}

// runner returns a runner that makes the calls of a batch one by one, in a random order if there is chance.
func runner(chance *rand.Rand) podcontrol.Runner {
	return func(_ string, n int, f func(int)) {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		if chance != nil {
			chance.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, i := range order {
			f(i)
		}
	}
}

// recorder counts events. They are not part of the state of the world.
type recorder struct{ manager *Manager }

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {
	r.manager.Events++
}

// Resync puts the set into the queue of every manager, as a periodic resync does.
func (w *World) Resync() {
	for _, m := range w.Managers {
		m.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: Namespace, Name: SetName}})
	}
}
