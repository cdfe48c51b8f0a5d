// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restingAnnotation marks a StatefulSet that release made and that is to leave pods alone until they are labeled.
const restingAnnotation = "apps.rollset.dev/resting"

// rest holds a StatefulSet at rest while its pods move.
type rest struct{ *mover }

// createResting creates a StatefulSet that updates no pod, to learn the name of its revision.
func (m rest) createResting(ctx context.Context) error {
	if err := m.free(ctx, m.Set); err != nil {
		return err
	}
	resting := m.Old.DeepCopy()
	if err := unstructured.SetNestedField(resting.Object, string(m.UID), "metadata", "annotations", restingAnnotation); err != nil {
		return err
	}
	if err := unstructured.SetNestedMap(resting.Object, map[string]any{"type": string(appsv1.OnDeleteStatefulSetStrategyType)}, "spec", "updateStrategy"); err != nil {
		return err
	}
	return m.create(ctx, resting)
}

// resting returns the StatefulSet if it rests; nil if it was given its strategy, or was made by someone else.
func (m rest) resting(ctx context.Context) (*unstructured.Unstructured, error) {
	o, err := m.get(ctx, m.Old)
	switch {
	case err != nil:
		return nil, err
	case o == nil:
		return nil, fmt.Errorf("%s is gone", describe(m.Old))
	case o.GetAnnotations()[restingAnnotation] != string(m.UID):
		return nil, nil
	}
	return o, nil
}

// labelForStatefulSet labels the pods with the StatefulSet's name of their revision.
func (m rest) labelForStatefulSet(ctx context.Context) error {
	revision := ""
	err := m.await(ctx, describe(m.Old)+" to name its revision", func(ctx context.Context) (bool, error) {
		o, err := m.resting(ctx)
		if err != nil || o == nil {
			return err == nil, err
		}
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		revision, _, _ = unstructured.NestedString(o.Object, "status", "updateRevision")
		return revision != "" && observed == o.GetGeneration(), nil
	})
	if err != nil || revision == "" {
		return err
	}
	return m.label(ctx, appsv1.ControllerRevisionHashLabelKey, revision)
}

// wakeStatefulSet gives a StatefulSet that rests the update strategy of its manifest. Its controller writes the status
// meanwhile, so the patch names the UID and not the version.
func (m rest) wakeStatefulSet(ctx context.Context) error {
	o, err := m.resting(ctx)
	if err != nil || o == nil {
		return err
	}
	strategy, _, err := unstructured.NestedMap(m.Old.Object, "spec", "updateStrategy")
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.GetUID(), "annotations": map[string]any{restingAnnotation: nil}},
		"spec":     map[string]any{"updateStrategy": strategy},
	})
	if err != nil {
		return fmt.Errorf("write the strategy: %w", err)
	}
	return m.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}
