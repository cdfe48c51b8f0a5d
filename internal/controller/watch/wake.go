// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Priority is that of sets that are woken by what happens around them. Those that have lost a pod come first. Users' edits have 0,
// and new sets come next: a thousand may come at once. What is there at the start, and resyncs, have handler.LowPriority and come
// last. Order says what a priority counts.
const (
	Priority     = handler.LowPriority / 2
	lostPriority = 1000
	newPriority  = -1
)

// queue is where sets wait to be reconciled.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wakeUp handles events of objects around sets: it wakes the sets that an object concerns, each as soon as its budget of
// looks allows. One look serves all events that came before it.
type wakeUp struct {
	events

	// sets are those that an object concerns.
	sets handler.MapFunc
	// changed reports whether an update concerns them; nil if every update does.
	changed func(ctx context.Context, before, after client.Object) bool
	// priority is that of an update or a deletion, after which there is no object; nil if it is always Priority.
	priority func(before, after client.Object) int
}

// priorityOf returns the priority of an update or a deletion.
func (w wakeUp) priorityOf(before, after client.Object) int {
	if w.priority == nil {
		return Priority
	}
	return w.priority(before, after)
}

// Create implements handler.EventHandler.
func (w wakeUp) Create(ctx context.Context, e event.CreateEvent, q queue) {
	priority := Priority
	if e.IsInInitialList {
		priority = handler.LowPriority
	}
	w.wake(q, priority, w.sets(ctx, e.Object))
}

// Update implements handler.EventHandler.
func (w wakeUp) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	if w.changed != nil && !w.changed(ctx, e.ObjectOld, e.ObjectNew) {
		return
	}
	priority := w.priorityOf(e.ObjectOld, e.ObjectNew)
	before, now := w.sets(ctx, e.ObjectOld), w.sets(ctx, e.ObjectNew)
	w.wake(q, priority, now)
	if !slices.Equal(before, now) {
		w.wake(q, priority, before)
	}
}

// Delete implements handler.EventHandler.
func (w wakeUp) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	w.wake(q, w.priorityOf(e.Object, nil), w.sets(ctx, e.Object))
}

// Generic implements handler.EventHandler.
func (w wakeUp) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	w.wake(q, Priority, w.sets(ctx, e.Object))
}

// wake puts sets into the queue.
func (e events) wake(q queue, priority int, sets []reconcile.Request) {
	now := e.Clock.Now()
	for _, set := range sets {
		add(q, priority, e.budget.wait(set.NamespacedName, now), set)
	}
}

// add puts a set into the queue.
func add(q queue, priority int, after time.Duration, set reconcile.Request) {
	if ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		ordered.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, set)
		return
	}
	q.AddAfter(set, after)
}
