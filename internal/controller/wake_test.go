// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/api/v1alpha1"
)

// entrance notes how requests are put into a queue.
type entrance struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	got []entry
}

type entry struct {
	After    time.Duration
	Priority int
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *entrance) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for range requests {
		e := entry{After: o.After}
		if o.Priority != nil {
			e.Priority = *o.Priority
		}
		q.got = append(q.got, e)
	}
}

// TestWake tells of a set of a thousand pods that was looked at again and again just now.
func TestWake(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000, 0)
	const wait = 600 * time.Millisecond // ten looks at 110 ms less the credit
	set := func(change func(*v1alpha1.RollSet)) *v1alpha1.RollSet {
		set := newOneSet().set.DeepCopy()
		set.UID, set.ResourceVersion, set.Generation = "set", "1", 1
		change(set)
		return set
	}
	same := func(*v1alpha1.RollSet) {}
	ready := watchedPod()
	unready := watchedPod()
	unready.Status.Conditions[0].Status = corev1.ConditionFalse

	tests := map[string]struct {
		of      client.Object
		before  client.Object // nil if it comes
		initial bool
		want    []entry
	}{
		"a set comes":           {of: set(same), want: []entry{{}}},
		"a set was there":       {of: set(same), initial: true, want: []entry{{Priority: handler.LowPriority}}},
		"a set is resynced":     {of: set(same), before: set(same), want: []entry{{Priority: handler.LowPriority}}},
		"a user edits the spec": {before: set(same), of: set(func(s *v1alpha1.RollSet) { s.Generation, s.ResourceVersion = 2, "2" }), want: []entry{{}}},
		"a user says why": {before: set(same), of: set(func(s *v1alpha1.RollSet) {
			s.ResourceVersion, s.Annotations = "2", map[string]string{"kubernetes.io/change-cause": "a whim"}
		}), want: []entry{{}}},
		"the status was written": {before: set(same), of: set(func(s *v1alpha1.RollSet) { s.ResourceVersion = "2" }), want: []entry{{After: wait, Priority: wakePriority}}},
		"a pod comes":            {of: ready, want: []entry{{After: wait, Priority: wakePriority}}},
		"a pod was there":        {of: ready, initial: true, want: []entry{{After: wait, Priority: handler.LowPriority}}},
		"a pod gets ready":       {before: unready, of: ready, want: []entry{{After: wait, Priority: wakePriority}}},
		"a pod is resynced":      {before: ready, of: ready},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Reconciler{Client: newOneSet(), Clock: clocktesting.NewFakePassiveClock(now)}
			for range 10 {
				r.attention.charge(client.ObjectKeyFromObject(set(same)), now, glance{pods: 1_000, writes: 1_000})
			}
			h := r.podEvents()
			if _, ok := tt.of.(*v1alpha1.RollSet); ok {
				h = r.setEvents()
			}
			q := &entrance{}
			if tt.before == nil {
				h.Create(t.Context(), event.CreateEvent{Object: tt.of, IsInInitialList: tt.initial}, q)
			} else {
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.of}, q)
			}
			if diff := cmp.Diff(tt.want, q.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
