// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is a work queue on the virtual clock. Like the real one it holds a request once, at the earliest time asked
// for. The back-off is the real limiter with the delays of the controller.
type Queue struct {
	clock   clock.PassiveClock
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	waiting []queued
}

type queued struct {
	request reconcile.Request
	at      time.Time
}

var _ workqueue.TypedRateLimitingInterface[reconcile.Request] = (*Queue)(nil)

// NewQueue returns an empty queue.
func NewQueue(c clock.PassiveClock) *Queue {
	return &Queue{
		clock:   c,
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 5*time.Minute),
	}
}

// Add implements workqueue.TypedInterface.
func (q *Queue) Add(r reconcile.Request) { q.AddAfter(r, 0) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *Queue) AddAfter(r reconcile.Request, d time.Duration) {
	at := q.clock.Now().Add(d)
	for i := range q.waiting {
		if q.waiting[i].request == r {
			if at.Before(q.waiting[i].at) {
				q.waiting[i].at = at
			}
			return
		}
	}
	q.waiting = append(q.waiting, queued{request: r, at: at})
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *Queue) AddRateLimited(r reconcile.Request) { q.AddAfter(r, q.limiter.When(r)) }

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *Queue) Forget(r reconcile.Request) { q.limiter.Forget(r) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *Queue) NumRequeues(r reconcile.Request) int { return q.limiter.NumRequeues(r) }

// Len implements workqueue.TypedInterface.
func (q *Queue) Len() int { return len(q.waiting) }

// Next returns the time at which the first request is due.
func (q *Queue) Next() (at time.Time, ok bool) {
	for i := range q.waiting {
		if !ok || q.waiting[i].at.Before(at) {
			at, ok = q.waiting[i].at, true
		}
	}
	return at, ok
}

// Get implements workqueue.TypedInterface: it takes the request that has been due for longest. It never blocks; callers
// ask Next first.
func (q *Queue) Get() (r reconcile.Request, shutdown bool) {
	first := 0
	for i := range q.waiting {
		if q.waiting[i].at.Before(q.waiting[first].at) {
			first = i
		}
	}
	r = q.waiting[first].request
	q.waiting = append(q.waiting[:first:first], q.waiting[first+1:]...)
	return r, false
}

// Done implements workqueue.TypedInterface. With one goroutine, a request is never added while it is being worked on.
func (q *Queue) Done(reconcile.Request) {}

// ShutDown implements workqueue.TypedInterface.
func (q *Queue) ShutDown() { q.waiting = nil }

// ShutDownWithDrain implements workqueue.TypedInterface.
func (q *Queue) ShutDownWithDrain() { q.waiting = nil }

// ShuttingDown implements workqueue.TypedInterface.
func (q *Queue) ShuttingDown() bool { return false }
