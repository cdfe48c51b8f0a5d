// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	toolscache "k8s.io/client-go/tools/cache"
)

func node() *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", UID: "1", ResourceVersion: "7", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"note": "long"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}}
	n.Spec.Taints = []corev1.Taint{{Key: "leaving", Value: "soon", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{}}}
	n.Spec.Unschedulable, n.Spec.ProviderID = true, "cloud://1"
	n.Status.Images = []corev1.ContainerImage{{Names: []string{"app:v1"}}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Unix(9, 0), Message: "kubelet is posting ready status"},
	}
	return n
}

func trimmedNode(t *testing.T, n *corev1.Node) *corev1.Node {
	t.Helper()
	object, err := TrimNode(n)
	trimmed, ok := object.(*corev1.Node)
	if err != nil || !ok {
		t.Fatalf("TrimNode = %T, %v", object, err)
	}
	return trimmed
}

func TestTrimNode(t *testing.T) {
	t.Parallel()
	want := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "1", ResourceVersion: "7"}}
	want.Spec.Taints, want.Spec.Unschedulable = []corev1.Taint{{Key: "leaving", Value: "soon", Effect: corev1.TaintEffectNoSchedule}}, true
	want.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if diff := cmp.Diff(want, trimmedNode(t, node())); diff != "" {
		t.Errorf("trimmed (-want +got):\n%s", diff)
	}
	gone := toolscache.DeletedFinalStateUnknown{Key: "n1"}
	if kept, err := TrimNode(gone); kept != gone || err != nil {
		t.Errorf("TrimNode(%v) = %v, %v", gone, kept, err)
	}
}

func TestNodeChanged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edit func(*corev1.Node)
		want bool
	}{
		"heartbeat": {func(n *corev1.Node) {
			n.Status.Conditions[1].LastHeartbeatTime, n.ResourceVersion = metav1.Unix(99, 0), "8"
		}, false},
		"images":              {func(n *corev1.Node) { n.Status.Images = nil }, false},
		"the time of a taint": {func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = nil }, false},
		"uncordon":            {func(n *corev1.Node) { n.Spec.Unschedulable = false }, true},
		"taint":               {func(n *corev1.Node) { n.Spec.Taints = nil }, true},
		"label":               {func(n *corev1.Node) { n.Labels["zone"] = "b" }, false},
		"not ready":           {func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }, true},
		"another":             {func(n *corev1.Node) { n.UID = "2" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := node()
			tt.edit(after)
			if got := NodeChanged(trimmedNode(t, node()), trimmedNode(t, after)); got != tt.want {
				t.Errorf("NodeChanged = %t", got)
			}
		})
	}
}

func TestTrimBudget(t *testing.T) {
	t.Parallel()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "default", UID: "1", ResourceVersion: "7", Generation: 2,
		OwnerReferences: []metav1.OwnerReference{{Name: "web", UID: "2"}},
	}}
	budget.Spec.MinAvailable = new(intstr.FromInt32(2))
	want := budget.DeepCopy()
	budget.Labels, budget.Annotations = map[string]string{"app": "web"}, map[string]string{"note": "long"}
	budget.Status.DisruptedPods = map[string]metav1.Time{"web-a": metav1.Unix(1, 0)}
	got, err := TrimBudget(budget)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("trimmed (-want +got), %v:\n%s", err, diff)
	}
	changed := want.DeepCopy()
	changed.ResourceVersion = "8"
	if BudgetChanged(want, changed) {
		t.Error("a status concerns sets")
	}
	changed.Generation = 3
	if !BudgetChanged(want, changed) {
		t.Error("a new spec concerns no set")
	}
}
