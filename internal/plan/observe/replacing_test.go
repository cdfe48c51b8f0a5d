// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1alpha1"
)

// TestReplacing lets a manager start while a pod that a pause replaces terminates. It remembers the pod until its successor is there.
func TestReplacing(t *testing.T) {
	t.Parallel()
	set := &v1alpha1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.Replicas, set.Spec.PodIdentity = new(int32(1)), v1alpha1.OrdinalIdentity
	set.Spec.UpdateStrategy.RollingUpdate.Paused = true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web-0", UID: "0", DeletionTimestamp: &metav1.Time{Time: time.Unix(999, 0)},
		Labels: map[string]string{"app": "web", v1alpha1.RevisionLabel: "web-2", v1alpha1.SpecifiedDeleteLabel: "true"},
	}}
	successor := pod.DeepCopy()
	successor.UID, successor.DeletionTimestamp = "1", nil
	delete(successor.Labels, v1alpha1.SpecifiedDeleteLabel)
	memory := &Memory{}
	for i, look := range []struct {
		pods []*corev1.Pod
		want string
	}{{[]*corev1.Pod{pod}, "web-2"}, {nil, "web-2"}, {[]*corev1.Pod{successor}, ""}, {nil, ""}} {
		if got := lookAgain(memory, set, look.pods...).Replacing["0"]; got != look.want {
			t.Errorf("look %d: the successor comes at %q, want %q", i, got, look.want)
		}
	}
}
