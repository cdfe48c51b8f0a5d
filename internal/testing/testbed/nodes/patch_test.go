// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"rollset.dev/rollset/internal/simulator/kubelet"
)

// TestStatusPatch plays a pod through its life, with every write as a patch that meets a gate which another client has
// changed meanwhile. The result is the kubelet's status, except for the gate.
func TestStatusPatch(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1", Generation: 1},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "gate", Status: corev1.ConditionFalse}}},
	}
	now, memory, writes := time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC), kubelet.Memory{}, 0
	for range 30 {
		switch writes {
		case 3: // it runs
			pod.Spec.Containers[0].Image, pod.Generation = "app:v2-crash", 2
		case 7:
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: now}, new(int64(30))
		}
		o := kubelet.Recorded().Step(pod, memory, now)
		memory, now = o.Memory, now.Add(o.Next)
		if o.Status == nil {
			continue
		}
		writes++
		patch, err := statusPatch(pod, o.Status)
		if err != nil {
			t.Fatal(err)
		}
		setGate(&pod.Status, corev1.ConditionTrue)
		setGate(o.Status, corev1.ConditionTrue)
		pod = applied(t, pod, patch)
		if diff := cmp.Diff(o.Status, &pod.Status, anyOrder()); diff != "" {
			t.Fatalf("after write %d the status differs (-want +got):\n%s\npatch: %s", writes, diff, patch)
		}
		setGate(&pod.Status, corev1.ConditionFalse)
	}
	if pod.Status.Phase != corev1.PodSucceeded {
		t.Errorf("phase = %s after %d writes, want the pod to have ended", pod.Status.Phase, writes)
	}
}

// anyOrder compares conditions as what they are: a map, in which a merge keeps no order.
func anyOrder() cmp.Option {
	return cmpopts.SortSlices(func(a, b corev1.PodCondition) bool { return a.Type < b.Type })
}

func setGate(status *corev1.PodStatus, to corev1.ConditionStatus) {
	for i := range status.Conditions {
		if status.Conditions[i].Type == "gate" {
			status.Conditions[i].Status = to
		}
	}
}

func TestConditionThatGoes(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue},
	}}}
	want := pod.Status.DeepCopy()
	want.Conditions = want.Conditions[:1]
	patch, err := statusPatch(pod, want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*want, applied(t, pod, patch).Status); diff != "" {
		t.Errorf("the status differs (-want +got):\n%s", diff)
	}
}

// applied returns the result of a patch as the API server computes it.
func applied(t *testing.T, pod *corev1.Pod, patch []byte) *corev1.Pod {
	t.Helper()
	body, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if body, err = strategicpatch.StrategicMergePatch(body, patch, corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	var result corev1.Pod
	if err := json.Unmarshal(body, &result); err != nil {
		t.Fatal(err)
	}
	return &result
}
