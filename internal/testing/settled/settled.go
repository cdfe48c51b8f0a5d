// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package settled makes a settled set with its pods, as the API server and kubelets leave it, and a cache that holds such
// objects.
package settled

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/podcontrol"
)

// Set returns a set of n pods with random names and no claims.
func Set(n int) *v1beta1.RollSet {
	labels := map[string]string{"app": "web"}
	set := &v1beta1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "set", Generation: 1, ResourceVersion: "1"},
		Spec: v1beta1.RollSetSpec{
			Replicas:    new(int32(n)),
			PodIdentity: v1beta1.RandomIdentity,
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "app", Image: "example.com/app:v1"}, {Name: "proxy", Image: "example.com/proxy:v1"},
				}},
			},
		},
	}
	set.Status.ObservedGeneration = -1
	return set
}

// Pod returns the pod at place i of a set, by its ordinal or in the sequence of ids, as the API server and a kubelet leave
// it.
func Pod(set *v1beta1.RollSet, revision string, i int) *corev1.Pod {
	id := identity.NewSequence(set.UID).At(i)
	if set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		id = strconv.Itoa(i)
	}
	pod := podcontrol.Build(set, snapshot.RevisionOf(revision, &set.Spec), id)
	pod.UID = types.UID(string(set.UID) + "-" + strconv.Itoa(i))
	pod.ResourceVersion, pod.Generation = "1", 1
	pod.CreationTimestamp = metav1.Unix(100, 0)
	pod.Spec.NodeName = "node-" + strconv.Itoa(i%100)
	pod.Status.Phase, pod.Status.ObservedGeneration = corev1.PodRunning, 1
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(200, 0),
		})
	}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ContainerID: "containerd://" + id, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(150, 0)}},
		})
	}
	return pod
}
