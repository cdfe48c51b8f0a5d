// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package optional

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What the manager may do with optional kinds, if the component disruption is installed; config/rbac/disruption/role.yaml is
// generated from these lines. Nodes belong to no namespace. Budgets can be granted for one namespace at a time.
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch,roleName=node-reader-role
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch;create;patch;delete,roleName=disruption-budget-role

// Verbs returns what the manager must be allowed to do with an optional kind before it watches it.
func Verbs(kind client.Object) []string {
	if _, node := kind.(*corev1.Node); node {
		return []string{"list", "watch"}
	}
	return []string{"list", "watch", "create", "patch", "delete"}
}
