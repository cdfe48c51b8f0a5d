// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
	"rollset.dev/rollset/internal/status"
	"rollset.dev/rollset/internal/update/steps"
)

// generation is the generation of every set here.
const generation = 3

// inState returns what the controller knows about a set, in the notation of snapshottest.
func inState(configuration, state string) status.Input {
	set := snapshottest.Parse(configuration, state)
	return status.Input{Snap: set, Generation: generation, Plan: plan.Next(set)}
}

// inStep returns a set whose rollout in three steps has come as far as the pods and the gates allow. The controller runs
// until the status no longer changes.
func inStep(t *testing.T, configuration, state string, gates map[string]metav1.ConditionStatus, options ...string) status.Input {
	t.Helper()
	set := snapshottest.Parse(configuration, state)
	rolling := &set.Spec.UpdateStrategy.RollingUpdate
	rolling.Steps = []v1beta1.RolloutStep{
		{Updated: intstr.FromInt32(1), SoakSeconds: 30},
		{Updated: intstr.FromInt32(2), Gates: []v1beta1.StepGate{{ConditionType: "Errors"}}},
		{Updated: intstr.FromInt32(3), Pause: true},
	}
	rolling.Paused = slices.Contains(options, "paused")
	var err error
	if set.Limits.Steps, err = snapshot.ResolveSteps(set.Spec, set.Limits.Replicas); err != nil {
		t.Fatal(err)
	}
	was := &v1beta1.RollSetStatus{}
	for range 9 {
		set.Rollout = steps.Plan(steps.Input{Snap: set, Status: was})
		in := status.Input{Snap: set, Generation: generation, Plan: plan.Next(set), Previous: was}
		now := status.Compute(in).Status
		for name, value := range gates {
			if c := meta.FindStatusCondition(now.Conditions, name); c != nil {
				c.Status = value
			}
		}
		if equality.Semantic.DeepEqual(was, &now) {
			return in
		}
		was = &now
	}
	t.Fatalf("the status never stays as it is: %+v", was.Rollout)
	return status.Input{}
}

// object returns the set with the status that the controller writes.
func object(t *testing.T, in status.Input) *unstructured.Unstructured {
	t.Helper()
	return toUnstructured(t, &v1beta1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Generation: generation},
		Spec:       *in.Snap.Spec,
		Status:     status.Compute(in).Status,
	})
}

func toUnstructured(t *testing.T, set *v1beta1.RollSet) *unstructured.Unstructured {
	t.Helper()
	set.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "RollSet"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}
