// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rollset.dev/rollset/api/v1beta1"
)

// Objects are a set and what it owns, as the cache shows them at a time. They belong to the cache and are not changed.
type Objects struct {
	Set *v1beta1.RollSet
	// Selector is the selector of the set, parsed.
	Selector labels.Selector
	// The set controls Pods and Revisions. Claims carry its label, or have its name in theirs.
	Pods      []*corev1.Pod
	Revisions []*appsv1.ControllerRevision
	Claims    []corev1.PersistentVolumeClaim
	// Orphans are pods without a controller that the selector matches.
	Orphans []*corev1.Pod
	// Classes are the storage classes by name, if the set asks for claims.
	Classes map[string]Class
	// Nodes are all nodes, if the set asks for them. Only their names, taints, spec.unschedulable and readiness count.
	Nodes []*corev1.Node
	// NodeAccess is whether nodes can be read, if the set asks for them.
	NodeAccess Access
	// Budgets are the disruption budgets of the namespace, if the set asks for them.
	Budgets Budgets
	Now     time.Time
	// ClockAhead is by how much Now is ahead of the API server's clock; zero if it is not, or not known.
	ClockAhead time.Duration
}
