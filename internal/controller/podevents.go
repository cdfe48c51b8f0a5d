// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"rollset.dev/rollset/api/v1alpha1"
)

// podEvents reconciles the sets that an event of a pod concerns. Pods are written to by kubelets, schedulers, network
// plugins and whoever puts annotations on them; an update without anything in it that a decision or a message depends
// on concerns nobody, because a look at a set costs as much as the set has pods.
func (r *Reconciler) podEvents() handler.EventHandler {
	return podWatch{wakeUp: wakeUp{reconciler: r, sets: r.setsOfPod, changed: r.podChanged}, sightings: &r.sightings}
}

// podChanged says whether anybody who decides could see a difference between two versions of a pod. In doubt it says so:
// one look too many costs little, one too few leaves a set waiting.
func (r *Reconciler) podChanged(ctx context.Context, before, after client.Object) bool {
	a, isPod := before.(*corev1.Pod)
	b, isPodToo := after.(*corev1.Pod)
	if !isPod || !isPodToo {
		return true
	}
	return !sameObject(a, b) || !sameStatus(&a.Status, &b.Status) || !r.sameAnnotations(ctx, a, b)
}

// sameObject compares metadata and spec. Of the spec nothing can change without raising the generation but the node;
// API servers older than 1.33 do not count generations, and then anything may have changed.
func sameObject(a, b *corev1.Pod) bool {
	return a.UID == b.UID &&
		a.Generation == b.Generation && b.Generation > 0 &&
		a.Spec.NodeName == b.Spec.NodeName &&
		a.DeletionTimestamp.Equal(b.DeletionTimestamp) &&
		maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.Finalizers, b.Finalizers) &&
		slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, sameOwner)
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && same(a.Controller, b.Controller)
}

// sameAnnotations compares the annotations that mean something to the controller: those that it reads for their own
// sake, and those of the template, by which it recognizes pods that came from somewhere else.
func (r *Reconciler) sameAnnotations(ctx context.Context, a, b *corev1.Pod) bool {
	if maps.Equal(a.Annotations, b.Annotations) {
		return true
	}
	template := r.templateAnnotations(ctx, b)
	matters := func(key string) bool {
		_, ok := template[key]
		return ok || key == corev1.PodDeletionCost || strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/")
	}
	return sameAt(a.Annotations, b.Annotations, matters) && sameAt(b.Annotations, a.Annotations, matters)
}

// sameAt says whether b has the entries of a at all keys that matter.
func sameAt(a, b map[string]string, matters func(key string) bool) bool {
	for key, value := range a {
		if got, ok := b[key]; (!ok || got != value) && matters(key) {
			return false
		}
	}
	return true
}

// templateAnnotations are those of the template of a pod's set; nil if the pod has none.
func (r *Reconciler) templateAnnotations(ctx context.Context, pod *corev1.Pod) map[string]string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || len(setOfOwner(pod, owner)) == 0 {
		return nil
	}
	set := &v1alpha1.RollSet{}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}
	if err := r.Client.Get(ctx, key, set, client.UnsafeDisableDeepCopy); err != nil {
		return nil // a set that is gone, or not yet known, is looked at when it comes
	}
	return set.Spec.Template.Annotations
}

// sameStatus compares what podstate and inplace read of a pod's status. Addresses, volumes, devices and the like say
// nothing about whether the pod is where it should be.
func sameStatus(a, b *corev1.PodStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration &&
		a.Phase == b.Phase &&
		a.Reason == b.Reason &&
		a.Message == b.Message &&
		slices.EqualFunc(a.Conditions, b.Conditions, sameCondition) &&
		slices.EqualFunc(a.InitContainerStatuses, b.InitContainerStatuses, sameContainer) &&
		slices.EqualFunc(a.ContainerStatuses, b.ContainerStatuses, sameContainer)
}

// sameCondition compares all but when a condition was last looked at.
func sameCondition(a, b corev1.PodCondition) bool {
	a.LastProbeTime = b.LastProbeTime
	return a == b
}

func sameContainer(a, b corev1.ContainerStatus) bool {
	return a.Name == b.Name &&
		a.Ready == b.Ready &&
		a.RestartCount == b.RestartCount &&
		a.Image == b.Image &&
		a.ImageID == b.ImageID &&
		a.ContainerID == b.ContainerID &&
		same(a.Started, b.Started) &&
		sameState(a.State, b.State) &&
		sameState(a.LastTerminationState, b.LastTerminationState) &&
		sameResources(a.Resources, b.Resources)
}

func sameState(a, b corev1.ContainerState) bool {
	return same(a.Waiting, b.Waiting) && same(a.Running, b.Running) && same(a.Terminated, b.Terminated)
}

// sameResources compares what a container has: quantities, however they are spelled.
func sameResources(a, b *corev1.ResourceRequirements) bool {
	if a == nil || b == nil {
		return a == b
	}
	equal := func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 }
	return maps.EqualFunc(a.Requests, b.Requests, equal) && maps.EqualFunc(a.Limits, b.Limits, equal)
}

// same compares what two pointers lead to.
func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
