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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// Manager is one process that runs the real controller. Everything in it is lost when it restarts.
type Manager struct {
	// Name is the actor of its writes.
	Name string
	// Client is the client of its present life.
	Client *apiserver.Client
	// Live is its reader past the caches.
	Live *apiserver.Live
	// Reconciles counts those of all lives.
	Reconciles int
	// Events counts the events that it recorded.
	Events int
	// Behind is where in the past the caches of some kinds begin after the next crash, as resource versions.
	Behind map[apiserver.Kind]int64

	// Skew is how far its clock is ahead of the world's.
	Skew time.Duration

	clock        clock.PassiveClock
	expectations *expectations.Store

	queue      *Queue
	reconciler reconcile.Reconciler
	handlers   map[apiserver.Kind]handler.EventHandler
	// born is the version of the store at the start of its present life. It knows nothing of what it wrote in others.
	born int64
	// working is the request that is being worked on.
	working reconcile.Request
}

// skewed is the clock of a manager.
type skewed struct {
	clock.PassiveClock
	manager *Manager
}

// Now implements clock.PassiveClock.
func (s skewed) Now() time.Time { return s.PassiveClock.Now().Add(s.manager.Skew) }

// Since implements clock.PassiveClock.
func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// behind is the newest resource version that the cache of a kind may begin with.
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
		h.Delete(ctx, event.DeleteEvent{Object: e.Old, DeleteStateUnknown: e.Unknown}, m.queue)
	case e.Old == nil:
		h.Create(ctx, event.CreateEvent{Object: e.New, IsInInitialList: e.Initial}, m.queue)
	default:
		h.Update(ctx, event.UpdateEvent{ObjectOld: e.Old, ObjectNew: e.New}, m.queue)
	}
}

// take takes the first request out of the queue.
func (m *Manager) take() {
	m.working, _ = m.queue.Get()
	m.Reconciles++
}

// work reconciles the request that was taken and puts it back as controller-runtime would.
func (m *Manager) work(ctx context.Context) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case apiserver.Crash:
			err = errCrashed
		default:
			panic(r) //nolint:forbidigo // not ours
		}
	}()
	result, err := m.reconciler.Reconcile(ctx, m.working)
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("reconcile of %s fails by a conflict, which is no failure: %w", m.working, err)
	case errors.Is(err, reconcile.TerminalError(nil)):
		m.queue.Forget(m.working)
	case err != nil:
		m.queue.AddRateLimited(m.working)
		if result != (reconcile.Result{}) {
			return fmt.Errorf("reconcile of %s returns a result beside an error: %v, %w", m.working, result, err)
		}
	case result.RequeueAfter > 0:
		m.queue.Forget(m.working)
		m.queue.AddAfter(m.working, result.RequeueAfter)
	default:
		m.queue.Forget(m.working)
	}
	return nil
}

// errCrashed says that the manager's process died in the middle of a reconcile.
var errCrashed = errors.New("the manager crashed")
