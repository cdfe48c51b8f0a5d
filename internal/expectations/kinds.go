// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package expectations

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PodKind returns the kind of pods.
func PodKind() schema.GroupKind { return corev1.SchemeGroupVersion.WithKind("Pod").GroupKind() }

// ClaimKind returns the kind of claims.
func ClaimKind() schema.GroupKind {
	return corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind()
}

// BudgetKind returns the kind of disruption budgets.
func BudgetKind() schema.GroupKind {
	return policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget").GroupKind()
}
