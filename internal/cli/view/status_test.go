// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
)

// TestOldStatusOfOnDelete checks that a set does not wait for its user to delete pods that the user has deleted, while the status says
// so still.
func TestOldStatusOfOnDelete(t *testing.T) {
	for name, test := range map[string]struct {
		pod  func(*corev1.Pod)
		want int
	}{
		"waits":  {func(*corev1.Pod) {}, session.ExitOnDelete},
		"marked": {func(pod *corev1.Pod) { pod.Labels[v1beta1.SpecifiedDeleteLabel] = "true" }, 0},
		"terminating": {func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: now}, []string{"example.com/keep"}
		}, 0},
		"updated":   {func(pod *corev1.Pod) { pod.Labels[v1beta1.RevisionLabel] = "web-b" }, 0},
		"of others": {func(pod *corev1.Pod) { pod.OwnerReferences = nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			set := testSet()
			set.UID, set.Spec.Selector, set.Spec.UpdateStrategy.Type = "1", &metav1.LabelSelector{}, v1beta1.OnDeleteStrategy
			set.Status.Conditions[0].Status = metav1.ConditionTrue
			pod := testPod("web-a", "web-a", 0)
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind("RollSet"))}
			test.pod(pod)
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(pod).Build()
			if v := confirm(t.Context(), c, set, judge(set, 0)); v.rests != test.want || (v.rests == 0) == v.done {
				t.Errorf("%+v, want exit code %d", v, test.want)
			}
		})
	}
}
