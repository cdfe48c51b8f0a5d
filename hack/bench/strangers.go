// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// siblings is how many foreign pods have an owner in common.
const siblings = 10

// strangers returns running pods of ReplicaSets.
func strangers(n int) []client.Object {
	w := wish{image: "app:v1", note: "1", sidecar: true}
	objects := make([]client.Object, n)
	for i := range objects {
		hash := fmt.Sprintf("%09d", i/siblings)
		app := "other-" + strconv.Itoa(i/siblings)
		pod := &corev1.Pod{Spec: w.template().Spec, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		pod.Namespace, pod.Name, pod.UID = "default", fmt.Sprintf("%s-%s-%05d", app, hash, i), uid(1, i)
		pod.Labels = map[string]string{"app": app, appsv1.DefaultDeploymentUniqueLabelKey: hash}
		pod.OwnerReferences = []metav1.OwnerReference{strangerOwner(app+"-"+hash, uid(2, i/siblings))}
		objects[i] = pod
	}
	return objects
}

// strangerOwner returns the reference to a ReplicaSet that controls a pod.
func strangerOwner(name string, id types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet", Name: name, UID: id,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}

// uid returns the UID of the n-th object of a kind.
func uid(kind, n int) types.UID { return types.UID(fmt.Sprintf("%08d-0000-4000-9000-%012d", kind, n)) }
