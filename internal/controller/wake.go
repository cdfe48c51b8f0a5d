// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// wakePriority is that of sets that are woken by what happens around them. Users' edits have 0 and come first; what is
// there at the start, and resyncs, have handler.LowPriority and come last.
const wakePriority = handler.LowPriority / 2

// queue is where sets wait to be reconciled.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wakeUp handles events of objects around sets: it wakes the sets that an object concerns, each as soon as its share of
// attention allows. One look serves all events that came before it.
type wakeUp struct {
	reconciler *Reconciler
	// sets are those that an object concerns.
	sets handler.MapFunc
	// changed says whether an update concerns them; nil if each one does.
	changed func(ctx context.Context, before, after client.Object) bool
}

// Create implements handler.EventHandler.
func (w wakeUp) Create(ctx context.Context, e event.CreateEvent, q queue) {
	priority := wakePriority
	if e.IsInInitialList {
		priority = handler.LowPriority
	}
	w.reconciler.wake(q, priority, w.sets(ctx, e.Object))
}

// Update implements handler.EventHandler.
func (w wakeUp) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	if w.changed != nil && !w.changed(ctx, e.ObjectOld, e.ObjectNew) {
		return
	}
	before, now := w.sets(ctx, e.ObjectOld), w.sets(ctx, e.ObjectNew)
	w.reconciler.wake(q, wakePriority, now)
	if !slices.Equal(before, now) {
		w.reconciler.wake(q, wakePriority, before)
	}
}

// Delete implements handler.EventHandler.
func (w wakeUp) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	w.reconciler.wake(q, wakePriority, w.sets(ctx, e.Object))
}

// Generic implements handler.EventHandler.
func (w wakeUp) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	w.reconciler.wake(q, wakePriority, w.sets(ctx, e.Object))
}

// wake puts sets into the queue.
func (r *Reconciler) wake(q queue, priority int, sets []reconcile.Request) {
	now := r.Clock.Now()
	for _, set := range sets {
		after := r.attention.wait(set.NamespacedName, now)
		if ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			ordered.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, set)
			continue
		}
		q.AddAfter(set, after)
	}
}
