// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/internal/controller/watch"
)

// TestALookIsChargedBeforeItsWrites lets events of pods come while they are created. They lead to no look before the set can afford
// another one.
func TestALookIsChargedBeforeItsWrites(t *testing.T) {
	t.Parallel()
	const pods, added = 1000, 10
	s := newRestingSet(t, pods, 0)
	s.set.Generation++
	s.set.Spec.Replicas = new(int32(pods + added))
	revisions := &appsv1.ControllerRevisionList{}
	if err := s.client.List(t.Context(), revisions); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{s.set, &revisions.Items[0]}
	for _, pod := range s.pods {
		objects = append(objects, pod)
	}
	s.restart(t, objects...)
	timers := s.newLine()
	line, key := s.reconciler.Line, client.ObjectKeyFromObject(s.set)
	for range 50 { // then it has no credit
		line.Order.Charge(key, watch.Look{})
	}
	created := 0
	s.client.onCreate = func(o client.Object) {
		if _, isPod := o.(*corev1.Pod); isPod {
			created++
			line.AddWithOpts(priorityqueue.AddOpts{Priority: new(watch.Priority)}, reconcile.Request{NamespacedName: key})
		}
	}
	s.reconcile(t)
	if created != added {
		t.Fatalf("%d pods were created, want %d", created, added)
	}
	if got, want := s.waits(timers), 110*time.Millisecond; got != want {
		t.Errorf("the events wait for %s, want %s", got, want)
	}
}

// newLine gives the reconciler an empty line, whose timers are on a clock of its own.
func (s *restingSet) newLine() *clocktesting.FakeClock {
	timers := clocktesting.NewFakeClock(s.reconciler.Clock.Now())
	s.reconciler.Line = watch.NewLine("", 1, timers)
	return timers
}

// waits returns how long it takes until a set may be taken from the line, a minute at most.
func (s *restingSet) waits(timers *clocktesting.FakeClock) (waited time.Duration) {
	for ; s.reconciler.Line.Len() == 0 && waited < time.Minute; waited += time.Millisecond {
		timers.Step(time.Millisecond)
	}
	return waited
}
