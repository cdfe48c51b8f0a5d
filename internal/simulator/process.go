// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/internal/controller"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/controller/optional"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// Process is one process that runs the real controller. Everything in it but the counters is lost when it restarts.
type Process struct {
	// Name is the name under which it writes.
	Name string
	// Client is its client since the last restart.
	Client *apiserver.Client
	// Live reads past its caches.
	Live *apiserver.Live
	// Clock is its clock.
	Clock clock.PassiveClock
	// Queue has the sets that it must look at.
	Queue *Queue
	// Expectations are its own writes that its caches do not show yet.
	Expectations *expectations.Store
	// Working is the request that it reconciles.
	Working reconcile.Request
	// Reconciles counts its reconciles, across restarts.
	Reconciles int
	// Events counts the events that it recorded, across restarts.
	Events int

	priority   int
	reconciler reconcile.Reconciler
	handlers   map[apiserver.Kind]handler.EventHandler
	repeats    map[reconcile.Request]repeat
}

// SameTime is the duration below which a step of the clock counts as no step: a manager may ask for the next reconcile in a
// nanosecond, again and again.
const SameTime = time.Millisecond

// maxRepeats is how many reconciles of a set in a row may ask for another one at once, because an answer of the API server changed
// what is to be done. More are a hot loop.
const maxRepeats = 8

// maxPause is the longest time between two such reconciles that count as in a row. In a busy manager more time passes, and the reconcile
// after it is due anyway.
const maxPause = time.Second

// repeat counts the reconciles of a set in a row that asked for another one at once. The last one was at a time.
type repeat struct {
	count int
	at    time.Time
}

// ErrCrashed means that the process ended during a reconcile.
var ErrCrashed = errors.New("the manager crashed")

// Wire builds the controller and takes its indexes and its event handlers from it.
func (p *Process) Wire(ctx context.Context, run podcontrol.Runner, ahead func() time.Duration) {
	if err := informer.IndexFields(ctx, p.Client.View); err != nil {
		apiserver.Unmodeled("indexes: %v", err)
	}
	p.Expectations = expectations.New(p.Clock)
	r := &controller.Reconciler{
		Client:       p.Client,
		Live:         p.Live,
		Pods:         p.Client.Pods(),
		Nodes:        informer.ListedNodes(p.Client),
		Watermarks:   func(kind schema.GroupKind, _ string) string { return p.Client.Synced(kind) },
		Optional:     func(client.Object) optional.Access { return optional.Access{Served: true} },
		Clock:        p.Clock,
		ClockAhead:   ahead,
		Events:       &recorder{process: p},
		Runner:       run,
		Expectations: p.Expectations,
		Metrics:      metrics.New(prometheus.NewRegistry(), p.Expectations),
		Line:         p.Queue.Line,
	}
	p.reconciler = reconcile.AsReconciler(p.Client, r)
	p.handlers = make(map[apiserver.Kind]handler.EventHandler)
	p.repeats = make(map[reconcile.Request]repeat)
	for _, watch := range slices.Concat(r.Sources(), r.OptionalSources()) {
		p.handlers[apiserver.KeyOf(watch.Object).Kind] = watch.Handler
	}
}

// Runner returns a runner that makes the calls of a batch one by one, in a random order if there is chance.
func Runner(chance *rand.Rand) podcontrol.Runner {
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

// recorder counts events. They are no part of the state of the cluster.
type recorder struct{ process *Process }

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {
	r.process.Events++
}

// Dispatch hands an event to the controller's own handlers.
func (p *Process) Dispatch(ctx context.Context, e apiserver.Event) {
	h, ok := p.handlers[e.Kind]
	switch {
	case !ok:
	case e.New == nil:
		h.Delete(ctx, event.DeleteEvent{Object: e.Old, DeleteStateUnknown: e.Unknown}, p.Queue)
	case e.Old == nil:
		h.Create(ctx, event.CreateEvent{Object: e.New, IsInInitialList: e.Initial}, p.Queue)
	default:
		h.Update(ctx, event.UpdateEvent{ObjectOld: e.Old, ObjectNew: e.New}, p.Queue)
	}
}

// Take removes the first request from the queue.
func (p *Process) Take() {
	p.Working, p.priority, _ = p.Queue.GetWithPriority()
	p.Reconciles++
}

// Work reconciles the request that was taken. The caller then calls again, which frees the worker and puts the request back as
// controller-runtime would. It returns an error if the controller answers as it must not, and ErrCrashed if the process ended.
func (p *Process) Work(ctx context.Context) (again func(), err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case apiserver.Crash:
			again, err = func() {}, ErrCrashed
		default:
			panic(r) //nolint:forbidigo // not ours
		}
	}()
	set, priority := p.Working, p.priority
	result, failure := p.reconciler.Reconcile(ctx, set)
	if result.Priority != nil {
		priority = *result.Priority
	}
	again = func() { p.putBack(set, priority, result, failure) }
	switch {
	case apierrors.IsConflict(failure):
		return again, fmt.Errorf("reconcile of %s fails by a conflict, which is no failure: %w", set, failure)
	case failure != nil && result != (reconcile.Result{}):
		return again, fmt.Errorf("reconcile of %s returns a result beside an error: %v, %w", set, result, failure)
	case failure == nil:
		return again, p.countRepeats(set, result.RequeueAfter)
	}
	return again, nil
}

// countRepeats returns an error if too many reconciles in a row asked for another one at once. One to which an event led is not counted.
func (p *Process) countRepeats(set reconcile.Request, after time.Duration) error {
	last, now := p.repeats[set], p.Clock.Now()
	switch {
	case after <= 0, after >= SameTime:
		delete(p.repeats, set)
		return nil
	case now.Sub(last.at) > maxPause:
		p.repeats[set] = repeat{count: 1, at: now}
		return nil
	case now.After(last.at):
		last = repeat{count: last.count + 1, at: now}
		p.repeats[set] = last
	}
	if last.count > maxRepeats {
		return fmt.Errorf("hot loop: %d reconciles of %s in a row asked for another one at once", last.count, set)
	}
	return nil
}

// putBack ends the work on a set, and puts it back into the line as controller-runtime would.
func (p *Process) putBack(set reconcile.Request, priority int, result reconcile.Result, err error) {
	defer p.Queue.Done(set)
	switch {
	case err != nil && !errors.Is(err, reconcile.TerminalError(nil)):
		p.Queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, set)
		return
	case err == nil && result.RequeueAfter > 0:
		p.Queue.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter, Priority: &priority}, set)
	}
	p.Queue.Forget(set)
}
