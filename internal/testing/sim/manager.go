// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// Manager is one process that runs the real controller. Everything in it is lost when it restarts.
type Manager struct {
	// Name is the name under which it writes.
	Name string
	// Client is its client since the last restart.
	Client *apiserver.Client
	// Live reads past its caches.
	Live *apiserver.Live
	// Reconciles counts its reconciles, across restarts.
	Reconciles int
	// Events counts the events that it recorded, across restarts.
	Events int
	// Behind holds the resource versions with which the caches of some kinds begin after the next crash.
	Behind map[apiserver.Kind]int64

	// Skew is the time by which its clock is ahead of the world's.
	Skew time.Duration

	clock        clock.PassiveClock
	expectations *expectations.Store

	queue      *Queue
	reconciler reconcile.Reconciler
	handlers   map[apiserver.Kind]handler.EventHandler
	// born is the version of the store at its last start. It remembers no writes from before.
	born int64
	// working is the request that it reconciles.
	working  reconcile.Request
	priority int
	// waits is whom it looks at while the set waits.
	waits waiting
	// hurries is how many of its reconciles in a row asked for another one at once, and hurried when the last of them was.
	hurries int
	hurried time.Time
}

// maxHurries is how many reconciles in a row may ask for another one at once, because an answer of the API server changed what is
// to be done. More are a hot loop, which delays of the queue may hide from the count of turns.
const maxHurries = 8

// skewed is the clock of a manager.
type skewed struct {
	clock.PassiveClock
	manager *Manager
}

// Now implements clock.PassiveClock.
func (s skewed) Now() time.Time { return s.PassiveClock.Now().Add(s.manager.Skew) }

// Since implements clock.PassiveClock.
func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// ahead returns by how much its clock is ahead, as it measures that: not at all for less than three seconds.
func (m *Manager) ahead() time.Duration {
	if m.Skew.Abs() < 3*time.Second {
		return 0
	}
	return m.Skew
}

// behind returns the newest resource version that the cache of a kind may begin with.
func (m *Manager) behind(kind apiserver.Kind) int64 {
	if version, ok := m.Behind[kind]; ok {
		return version
	}
	return math.MaxInt64
}

// dispatch hands an event to the controller's own handlers.
func (m *Manager) dispatch(ctx context.Context, e apiserver.Event) {
	h, ok := m.handlers[e.Kind]
	if !ok {
		return
	}
	switch {
	case e.New == nil:
		m.waits.lost = m.waits.lost || e.Kind == apiserver.Pods
		h.Delete(ctx, event.DeleteEvent{Object: e.Old, DeleteStateUnknown: e.Unknown}, m.queue)
	case e.Old == nil:
		h.Create(ctx, event.CreateEvent{Object: e.New, IsInInitialList: e.Initial}, m.queue)
	default:
		h.Update(ctx, event.UpdateEvent{ObjectOld: e.Old, ObjectNew: e.New}, m.queue)
	}
}

// take removes the first request from the queue.
func (m *Manager) take() {
	m.working, m.priority, _ = m.queue.GetWithPriority()
	m.Reconciles++
}

// work reconciles the request that was taken and puts it back as controller-runtime would.
// A request that hung holds its worker.
func (m *Manager) work(ctx context.Context, hung *bool) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case apiserver.Crash:
			err = errCrashed
		default:
			panic(r) //nolint:forbidigo // not ours
		}
	}()
	set, priority := m.working, m.priority
	result, err := m.reconciler.Reconcile(ctx, set)
	if result.Priority != nil {
		priority = *result.Priority
	}
	own := set.Namespace == Namespace
	m.waits.held = m.waits.held || own && *hung
	failure := err // what this returns is another one
	again := func() {
		m.waits.held = m.waits.held && !own
		m.putBack(set, priority, result, failure)
	}
	if *hung {
		m.queue.timers.AfterFunc(hangs, again)
	} else {
		defer again()
	}
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("reconcile of %s fails by a conflict, which is no failure: %w", set, err)
	case err != nil && result != (reconcile.Result{}):
		return fmt.Errorf("reconcile of %s returns a result beside an error: %v, %w", set, result, err)
	case !own:
	case result.RequeueAfter > 0:
		switch now := m.clock.Now(); {
		case result.RequeueAfter >= sameTime:
			m.hurries = 0
		case now.After(m.hurried): // otherwise events led to this one
			m.hurries, m.hurried = m.hurries+1, now
		}
		if m.hurries > maxHurries {
			return fmt.Errorf("hot loop: %d reconciles of %s in a row asked for another one at once", m.hurries, set)
		}
	case err == nil:
		m.hurries = 0
	}
	return nil
}

// putBack ends the work on a set, and puts it back into the line as controller-runtime would.
func (m *Manager) putBack(set reconcile.Request, priority int, result reconcile.Result, err error) {
	defer m.queue.Done(set)
	switch {
	case err != nil && !errors.Is(err, reconcile.TerminalError(nil)):
		m.queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, set)
		return
	case err == nil && result.RequeueAfter > 0:
		m.queue.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter, Priority: &priority}, set)
	}
	m.queue.Forget(set)
}

// errCrashed means that the manager's process died during a reconcile.
var errCrashed = errors.New("the manager crashed")
