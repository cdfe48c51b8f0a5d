// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

// TestWhatEndsAWait lets a write fail, changes something, and asks whether the write still has to wait.
func TestWhatEndsAWait(t *testing.T) {
	t.Parallel()
	onPod, anyCreate := attempt.Key{Verb: attempt.Deleting, Object: "1"}, attempt.AnyCreate()
	status := attempt.Key{Verb: WritingStatus}
	tests := map[string]struct {
		key    attempt.Key
		change func(*snapshot.Objects)
		want   bool
	}{
		"nothing":                  {onPod, func(*snapshot.Objects) {}, true},
		"an annotation of the pod": {onPod, func(o *snapshot.Objects) { o.Pods[0].Annotations = map[string]string{"a": "b"} }, true},
		"a label of the pod":       {onPod, func(o *snapshot.Objects) { o.Pods[0].Labels = map[string]string{"a": "b"} }, false},
		"the spec of the pod":      {onPod, func(o *snapshot.Objects) { o.Pods[0].Generation++ }, false},
		"the spec of the set":      {onPod, func(o *snapshot.Objects) { o.Set.Generation++ }, false},
		"the specs of both": {onPod, func(o *snapshot.Objects) {
			o.Set.Generation, o.Pods[0].Generation = o.Pods[0].Generation, o.Set.Generation
		}, false},
		"another pod goes":                 {onPod, func(o *snapshot.Objects) { o.Pods = o.Pods[:1] }, true},
		"time":                             {onPod, func(o *snapshot.Objects) { o.Now = o.Now.Add(Shortest) }, false},
		"a pod goes, and its quota counts": {anyCreate, func(o *snapshot.Objects) { o.Pods = o.Pods[:1] }, false},
		"a pod ends, and its quota counts": {anyCreate, func(o *snapshot.Objects) { o.Pods[1].Status.Phase = corev1.PodFailed }, false},
		"a pod changes, and stays":         {anyCreate, func(o *snapshot.Objects) { o.Pods[1].ResourceVersion = "9" }, true},
		"the set has another version":      {status, func(o *snapshot.Objects) { o.Set.ResourceVersion = "9" }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &snapshot.Objects{
				Set: &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Generation: 1}}, Now: time.Unix(1000, 0),
				Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 11}}, {ObjectMeta: metav1.ObjectMeta{UID: "2"}}},
			}
			var table Table
			table.For(o).Failed(tt.key, errors.New("no"))
			tt.change(o)
			if wait := table.For(o).Wait(tt.key); (wait > 0) != tt.want {
				t.Errorf("wait = %s, want one: %t", wait, tt.want)
			}
		})
	}
}

// TestGatesRest opens a gate. The same write waits for a second, so that a stranger who closes gates does not set the pace.
func TestGatesRest(t *testing.T) {
	t.Parallel()
	o := &snapshot.Objects{
		Set: &v1beta1.RollSet{}, Now: time.Unix(1000, 0), Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "1"}}},
	}
	var table Table
	opens := attempt.Key{Verb: attempt.Opening, Object: "1"}
	w := table.For(o)
	w.Attempted(attempt.Result{Key: opens}, false)
	if wait := w.Wait(opens); wait != time.Second {
		t.Errorf("wait = %s, want 1s", wait)
	}
}

// TestRefusalsOfObjectsThatAreGone checks that refusals of deleted objects are forgotten, and that planners get the others, except for
// writes that they do not plan.
func TestRefusalsOfObjectsThatAreGone(t *testing.T) {
	t.Parallel()
	o := &snapshot.Objects{
		Set: &v1beta1.RollSet{}, Now: time.Unix(1000, 0), Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "1"}}},
	}
	var table Table
	stays, goes, status := attempt.Key{Verb: attempt.Deleting, Object: "1"}, attempt.Key{Verb: attempt.Deleting, Object: "2"}, attempt.Key{Verb: WritingStatus}
	for _, k := range []attempt.Key{stays, goes, status} {
		table.For(o).Failed(k, errors.New("no"))
	}
	claim := attempt.Key{Verb: attempt.Creating, Object: "web-0"}
	table.For(o).Attempted(attempt.Result{Key: claim, Err: errors.New("no"), OfClaim: true}, false)
	refusals := table.For(o).Refusals()
	if len(refusals) != 2 || !refusals[claim].OfClaim || refusals[stays].OfClaim || refusals[stays].Message != "no" || refusals[stays].Retry != Shortest {
		t.Errorf("refusals = %v, want one of the pod that exists, and one of a claim", refusals)
	}
	if table.Has(goes) || !table.Has(status) {
		t.Errorf("%v are remembered", table.Keys())
	}
	if retry := table.For(o).Retry(); retry != Shortest {
		t.Errorf("retry = %s, want %s", retry, Shortest)
	}
}
