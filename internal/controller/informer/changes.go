// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"rollset.dev/rollset/api/v1beta1"
)

// Changed reports whether a decision or a message could depend on the difference between two versions of a pod. If that is unknown,
// it returns true: a look too many costs little, but a look too few leaves a set waiting. Most annotations of other programs do not
// matter. Those of the set's template do, because adopted pods are recognized by them. The template is read only if annotations differ.
func Changed(a, b *corev1.Pod, template func() map[string]string) bool {
	return !sameObject(a, b) || !equality.Semantic.DeepEqual(keptStatus(&a.Status), keptStatus(&b.Status)) || !sameAnnotations(a.Annotations, b.Annotations, template)
}

// sameObject compares metadata and spec. No field of a spec but the node can change without a new generation. API servers older than
// 1.33 do not count generations, so anything may have changed.
func sameObject(a, b *corev1.Pod) bool {
	return a.UID == b.UID &&
		a.Generation == b.Generation && b.Generation > 0 &&
		a.Spec.NodeName == b.Spec.NodeName &&
		a.DeletionTimestamp.Equal(b.DeletionTimestamp) &&
		maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.Finalizers, b.Finalizers) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences)
}

func sameAnnotations(a, b map[string]string, template func() map[string]string) bool {
	if maps.Equal(a, b) {
		return true
	}
	read := template()
	ignored := func(key, _ string) bool {
		_, ok := read[key]
		return !ok && key != corev1.PodDeletionCost && key != v1beta1.LifecycleSinceAnnotation && !strings.HasPrefix(key, v1beta1.GroupVersion.Group+"/")
	}
	a, b = maps.Clone(a), maps.Clone(b)
	maps.DeleteFunc(a, ignored)
	maps.DeleteFunc(b, ignored)
	return maps.Equal(a, b)
}
