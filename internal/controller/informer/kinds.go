// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer configures the caches: the fields of objects that they keep, their indexes, the resource versions that they have
// reached, and the changes of a pod that matter.
package informer

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/expectations"
)

// Watched returns the kinds whose caches a reconcile waits for after a write.
func Watched() map[schema.GroupKind]client.Object {
	return map[schema.GroupKind]client.Object{
		SetKind():                &v1beta1.RollSet{},
		RevisionKind():           &appsv1.ControllerRevision{},
		expectations.PodKind():   &corev1.Pod{},
		expectations.ClaimKind(): &corev1.PersistentVolumeClaim{},
	}
}

// ByObject returns the transforms of a manager's cache, by kind. No namespaces means all.
func ByObject(namespaces map[string]cache.Config) map[client.Object]cache.ByObject {
	trim := &Trim{Whole: len(namespaces) > 0}
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:                   {Transform: trim.Pod},
		&corev1.Node{}:                  {Transform: TrimNode},
		&policyv1.PodDisruptionBudget{}: {Transform: TrimBudget},
	}
}

// SetKind returns the kind RollSet.
func SetKind() schema.GroupKind { return v1beta1.GroupVersion.WithKind("RollSet").GroupKind() }

// RevisionKind returns the kind ControllerRevision.
func RevisionKind() schema.GroupKind {
	return appsv1.SchemeGroupVersion.WithKind("ControllerRevision").GroupKind()
}

// SetOf returns the set that controls an object; false if it has no controller, or one of another kind.
func SetOf(o client.Object) (set types.NamespacedName, ok bool) {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || !isSet(owner) {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}, true
}

// isSet reports whether a reference refers to a set.
func isSet(owner *metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && group.Group == v1beta1.GroupVersion.Group && owner.Kind == SetKind().Kind
}
