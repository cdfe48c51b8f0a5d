// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/controller/watch"
)

// TestALookIsChargedBeforeItsWrites asks, while pods are created, how long the events of these pods wait. They lead to no look
// before the set can afford another one.
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
	key, now := client.ObjectKeyFromObject(s.set), s.reconciler.Clock.Now()
	wait := func() time.Duration { return s.reconciler.router.Charge(key, now, watch.Look{}) }
	before := wait()
	for before == 0 { // the set has credit
		before = wait()
	}
	var during []time.Duration
	s.client.onCreate = func(o client.Object) {
		if _, isPod := o.(*corev1.Pod); isPod {
			during = append(during, wait())
		}
	}
	s.reconcile(t)
	if len(during) != added {
		t.Fatalf("%d pods were created, want %d", len(during), added)
	}
	if least := before + 100*time.Millisecond; during[0] < least {
		t.Errorf("the event of the first pod waits for %s, want %s at least", during[0], least)
	}
}
