// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// minRetry and maxRetry bound the wait after an error.
const (
	minRetry = 5 * time.Millisecond
	maxRetry = 5 * time.Minute
)

// Line is the queue in which sets wait to be reconciled: a workqueue in the Order of this package. It holds a set once, at the
// earliest requested time and with the highest requested priority, but not before the set can afford the look.
type Line struct {
	*workqueue.Typed[reconcile.Request]

	// Workers is how many sets are worked on at a time.
	Workers int
	// Order decides which set is next. Reconciles charge their cost to it.
	Order *Order

	limiter workqueue.TypedRateLimiter[reconcile.Request]
	clock   clock.WithTickerAndDelayedExecution

	mu sync.Mutex
	// later holds the sets that are put into the line later.
	later map[reconcile.Request]*delayed
}

// delayed is a set that is put into the line at a time.
type delayed struct {
	at       time.Time
	priority int
	timer    clock.Timer
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*Line)(nil)

// NewLine returns an empty line before a number of workers. The metrics of the queue have its name.
func NewLine(name string, workers int, c clock.WithTickerAndDelayedExecution) *Line {
	order := NewOrder(workers, c)
	return &Line{
		Typed:   workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Clock: c, Queue: order}),
		Workers: workers, Order: order,
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetry, maxRetry),
		clock:   c, later: map[reconcile.Request]*delayed{},
	}
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (l *Line) AddWithOpts(o priorityqueue.AddOpts, sets ...reconcile.Request) {
	priority := 0
	if o.Priority != nil {
		priority = *o.Priority
	}
	for _, set := range sets {
		after := o.After
		if o.RateLimited {
			if limit := l.limiter.When(set); after == 0 || limit < after {
				after = limit
			}
		}
		l.add(set, after, priority)
	}
}

// add puts a set into the line, now or later.
func (l *Line) add(set reconcile.Request, after time.Duration, priority int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ShuttingDown() {
		return
	}
	after = max(after, l.Order.Wait(set, priority))
	at := l.clock.Now().Add(after)
	if waits, ok := l.later[set]; ok {
		waits.priority = max(waits.priority, priority)
		if after > 0 && !at.Before(waits.at) {
			return
		}
		priority = waits.priority
		waits.timer.Stop()
		delete(l.later, set)
	}
	if after <= 0 || l.Order.Waits(set) { // one look serves both
		l.Order.Raise(set, priority)
		l.Typed.Add(set)
		return
	}
	d := &delayed{at: at, priority: priority}
	l.later[set] = d
	d.timer = l.clock.AfterFunc(after, func() { l.due(set, d) })
}

// due puts a set into the line whose time has come, unless another one was asked for meanwhile.
func (l *Line) due(set reconcile.Request, d *delayed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.later[set] != d {
		return
	}
	delete(l.later, set)
	l.Order.Raise(set, d.priority)
	l.Typed.Add(set)
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (l *Line) GetWithPriority() (set reconcile.Request, priority int, shutdown bool) {
	set, shutdown = l.Get()
	return set, l.Order.Priority(set), shutdown
}

// Done implements workqueue.TypedInterface. The worker that calls it takes the next set itself, so no other worker is woken for the
// sets that may be taken now.
func (l *Line) Done(set reconcile.Request) {
	l.Order.Done(set)
	l.Typed.Done(set)
}

// Add implements workqueue.TypedInterface.
func (l *Line) Add(set reconcile.Request) { l.add(set, 0, 0) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (l *Line) AddAfter(set reconcile.Request, after time.Duration) { l.add(set, after, 0) }

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (l *Line) AddRateLimited(set reconcile.Request) { l.add(set, l.limiter.When(set), 0) }

// Forget implements workqueue.TypedRateLimitingInterface.
func (l *Line) Forget(set reconcile.Request) { l.limiter.Forget(set) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (l *Line) NumRequeues(set reconcile.Request) int { return l.limiter.NumRequeues(set) }
