// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
	"rollset.dev/rollset/internal/status"
)

// generation is that of every set here.
const generation = 3

// inState is what the controller knows of a set, in the words of snapshottest.
func inState(configuration, state string) status.Input {
	set := snapshottest.Parse(configuration, state)
	return status.Input{Set: set, Generation: generation, Plan: plan.Next(set)}
}

// object is the set with the status that the controller writes.
func object(t *testing.T, in status.Input) *unstructured.Unstructured {
	t.Helper()
	return toUnstructured(t, &v1alpha1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Generation: generation},
		Spec:       *in.Set.Spec,
		Status:     status.Compute(in).Status,
	})
}

func toUnstructured(t *testing.T, set *v1alpha1.RollSet) *unstructured.Unstructured {
	t.Helper()
	set.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RollSet"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}
