// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/podstate"
)

// NodeKind is the kind of nodes.
func NodeKind() schema.GroupKind { return corev1.SchemeGroupVersion.WithKind("Node").GroupKind() }

// KindOf returns the kind of an object of an optional kind.
func KindOf(object client.Object) schema.GroupKind {
	if _, node := object.(*corev1.Node); node {
		return NodeKind()
	}
	return expectations.BudgetKind()
}

// TrimNode is the transform of the cache of nodes. It keeps only whether a node is ready and whether it leaves, because a
// large cluster has thousands of nodes, and the labels of each take more than all the rest. What many nodes have in common is
// kept once.
func TrimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil // what is known of a node that is gone
	}
	bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
	}}
	bare.Spec.Unschedulable = node.Spec.Unschedulable
	bare.Spec.Taints = slices.Grow(bare.Spec.Taints, len(node.Spec.Taints))
	for _, t := range node.Spec.Taints {
		bare.Spec.Taints = append(bare.Spec.Taints, corev1.Taint{
			Key: unique.Make(t.Key).Value(), Value: unique.Make(t.Value).Value(), Effect: unique.Make(t.Effect).Value(),
		})
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			bare.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: unique.Make(c.Status).Value()}}
		}
	}
	return bare, nil
}

// TrimBudget is the transform of the cache of disruption budgets. What a budget counts is not read.
func TrimBudget(object any) (any, error) {
	budget, ok := object.(*policyv1.PodDisruptionBudget)
	if !ok {
		return object, nil // what is known of a budget that is gone
	}
	bare := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Name: budget.Name, Namespace: budget.Namespace, UID: budget.UID, ResourceVersion: budget.ResourceVersion,
		Generation: budget.Generation, DeletionTimestamp: budget.DeletionTimestamp,
		OwnerReferences: budget.OwnerReferences,
	}}
	bare.Spec = budget.Spec
	return bare, nil
}

// NodeChanged reports whether a decision could depend on the difference between two versions of a node as TrimNode leaves
// them. Kubelets write the status of every node all the time.
func NodeChanged(a, b *corev1.Node) bool {
	return a.UID != b.UID ||
		a.Spec.Unschedulable != b.Spec.Unschedulable ||
		!equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints) ||
		podstate.NodeReady(a) != podstate.NodeReady(b)
}

// BudgetChanged reports whether a decision could depend on the difference between two versions of a budget. The disruption
// controller writes the status of a budget whenever one of its pods changes.
func BudgetChanged(a, b *policyv1.PodDisruptionBudget) bool {
	return a.UID != b.UID ||
		a.Generation != b.Generation ||
		!a.DeletionTimestamp.Equal(b.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences)
}
