// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

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

// queue is where sets wait to be reconciled.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wakeUp handles events of objects around sets: it wakes the sets that an object concerns.
type wakeUp struct {
	events

	// sets returns the sets that an object concerns.
	sets handler.MapFunc
	// changed reports whether an update concerns them; nil if every update does.
	changed func(ctx context.Context, before, after client.Object) bool
	// priority returns the priority of an update or a deletion; after is nil for a deletion. Without the function it is Priority.
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
	add(q, priority, w.sets(ctx, e.Object)...)
}

// Update implements handler.EventHandler.
func (w wakeUp) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	if w.changed != nil && !w.changed(ctx, e.ObjectOld, e.ObjectNew) {
		return
	}
	priority := w.priorityOf(e.ObjectOld, e.ObjectNew)
	before, now := w.sets(ctx, e.ObjectOld), w.sets(ctx, e.ObjectNew)
	add(q, priority, now...)
	if !slices.Equal(before, now) {
		add(q, priority, before...)
	}
}

// Delete implements handler.EventHandler.
func (w wakeUp) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	add(q, w.priorityOf(e.Object, nil), w.sets(ctx, e.Object)...)
}

// Generic implements handler.EventHandler.
func (w wakeUp) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	add(q, Priority, w.sets(ctx, e.Object)...)
}

// add puts sets into the queue.
func add(q queue, priority int, sets ...reconcile.Request) {
	if ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, sets...)
		return
	}
	for _, set := range sets {
		q.Add(set)
	}
}
