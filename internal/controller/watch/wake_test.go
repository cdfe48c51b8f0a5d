// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/settled"
)

// entrance notes how requests are put into a queue.
type entrance struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	got []int
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *entrance) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	priority := 0
	if o.Priority != nil {
		priority = *o.Priority
	}
	for range requests {
		q.got = append(q.got, priority)
	}
}

// TestWake checks with which priority each event puts a set into the line.
func TestWake(t *testing.T) {
	t.Parallel()
	set := func(change func(*v1beta1.RollSet)) *v1beta1.RollSet {
		set := newOneSet().set.DeepCopy()
		set.UID, set.ResourceVersion, set.Generation = "set", "1", 1
		change(set)
		return set
	}
	same := func(*v1beta1.RollSet) {}
	ready := watchedPod()
	unready := watchedPod()
	unready.Status.Conditions[0].Status = corev1.ConditionFalse
	leaving, ended := watchedPod(), watchedPod()
	leaving.DeletionTimestamp, ended.Status.Phase = &metav1.Time{}, corev1.PodFailed

	tests := map[string]struct {
		of      client.Object
		before  client.Object // nil if it comes
		initial bool
		gone    bool
		want    []int
	}{
		"a set comes":           {of: set(same), want: []int{newPriority}},
		"a set was there":       {of: set(same), initial: true, want: []int{handler.LowPriority}},
		"a set is resynced":     {of: set(same), before: set(same), want: []int{handler.LowPriority}},
		"a user edits the spec": {before: set(same), of: set(func(s *v1beta1.RollSet) { s.Generation, s.ResourceVersion = 2, "2" }), want: []int{0}},
		"a user says why": {before: set(same), of: set(func(s *v1beta1.RollSet) {
			s.ResourceVersion, s.Annotations = "2", map[string]string{"kubernetes.io/change-cause": "a whim"}
		}), want: []int{0}},
		"the status was written": {before: set(same), of: set(func(s *v1beta1.RollSet) { s.ResourceVersion = "2" }), want: []int{Priority}},
		"a pod comes":            {of: ready, want: []int{Priority}},
		"a pod was there":        {of: ready, initial: true, want: []int{handler.LowPriority}},
		"a pod gets ready":       {before: unready, of: ready, want: []int{Priority}},
		"a pod is resynced":      {before: ready, of: ready},
		"a pod is deleted":       {before: ready, of: leaving, want: []int{lostPriority}},
		"a pod ends":             {before: ready, of: ended, want: []int{lostPriority}},
		"it ended before":        {before: ended, of: leaving, want: []int{Priority}},
		"a pod is gone":          {of: leaving, gone: true, want: []int{lostPriority}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Router{}
			var h handler.EventHandler
			for _, source := range r.Sources(Cluster{Cache: newOneSet()}) {
				if fmt.Sprintf("%T", source.Object) == fmt.Sprintf("%T", tt.of) {
					h = source.Handler
				}
			}
			q := &entrance{}
			switch {
			case tt.gone:
				h.Delete(t.Context(), event.DeleteEvent{Object: tt.of}, q)
			case tt.before == nil:
				h.Create(t.Context(), event.CreateEvent{Object: tt.of, IsInInitialList: tt.initial}, q)
			default:
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.of}, q)
			}
			if diff := cmp.Diff(tt.want, q.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// oneSet is a client of a cache that holds one set.
type oneSet struct {
	client.Client

	set *v1beta1.RollSet
}

// Get implements client.Reader.
func (c oneSet) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	set, ok := into.(*v1beta1.RollSet)
	if !ok || key != client.ObjectKeyFromObject(c.set) {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	*set = *c.set
	return nil
}

func newOneSet() oneSet {
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	set.Spec.Template.Annotations = map[string]string{"team": "blue"}
	return oneSet{set: set}
}

// watchedPod is a ready pod of the set "web".
func watchedPod() *corev1.Pod {
	pod := settled.Pod(settled.Set(1), "web-1", 0)
	pod.Annotations = map[string]string{"team": "blue"}
	return pod
}

func TestWhatIsNoPodHasChanged(t *testing.T) {
	t.Parallel()
	e := events{Router: new(Router), Cluster: Cluster{Cache: newOneSet()}}
	if bare := new(metav1.PartialObjectMetadata); !e.podChanged(t.Context(), bare, bare) {
		t.Error("podChanged = false for objects of which nothing is known")
	}
}

// TestAnnotationsOfTheTemplateMatter changes an annotation of a pod that its set's template has, and one that it has not.
func TestAnnotationsOfTheTemplateMatter(t *testing.T) {
	t.Parallel()
	e := events{Router: new(Router), Cluster: Cluster{Cache: newOneSet()}}
	for key, want := range map[string]bool{"team": true, "example.com/seen": false} {
		after := watchedPod()
		after.Annotations[key] = "red"
		if got := e.podChanged(t.Context(), watchedPod(), after); got != want {
			t.Errorf("podChanged = %t for annotation %s, want %t", got, key, want)
		}
	}
}
