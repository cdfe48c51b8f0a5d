// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/optional"
)

// lookAround reads from the cache what spec.disruption makes matter to the set though the set does not own it. Each kind is
// read only if it is needed and the manager may read it. A set that had a budget looks at budgets even if it wants none now.
func (v *view) lookAround(ctx context.Context, cache client.Reader, nodes informer.Nodes, lookup optional.Lookup) (err error) {
	if v.Set.Spec.ReplacesOnDrain() {
		v.NodeAccess = lookup(&corev1.Node{})
	}
	if v.NodeAccess.Served {
		if v.Nodes, err = nodes(ctx); err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
	}
	if v.Set.Spec.WantsBudget() || v.budgeted || v.hadDisruption() {
		v.Budgets.Access = lookup(&policyv1.PodDisruptionBudget{})
	}
	if v.Budgets.Served {
		budgets := &policyv1.PodDisruptionBudgetList{}
		if err := cache.List(ctx, budgets, client.InNamespace(v.Set.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list disruption budgets: %w", err)
		}
		for i := range budgets.Items {
			v.Budgets.All = append(v.Budgets.All, &budgets.Items[i])
		}
	}
	return nil
}

// hadDisruption reports whether the last status was about disruption. Then there may be a budget that is no longer wanted.
func (v *view) hadDisruption() bool {
	return meta.FindStatusCondition(v.Set.Status.Conditions, v1beta1.ConditionDisruptionReady) != nil
}
