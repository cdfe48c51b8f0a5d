// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

func TestSpecifiedDelete(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	if snapshot.SpecifiedDelete(pod) {
		t.Error("a pod without the label is not specified")
	}
	pod.Labels[v1beta1.SpecifiedDeleteLabel] = ""
	if !snapshot.SpecifiedDelete(pod) {
		t.Error("any value of the label but false will do, the empty one too")
	}
	pod.Labels[v1beta1.SpecifiedDeleteLabel] = "false"
	if snapshot.SpecifiedDelete(pod) {
		t.Error("the value false takes the mark back")
	}
}
