// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
)

// The fields by which the cache finds objects.
const (
	// ControllerIndex finds pods and revisions by the UID of the set that controls them, and those without a controller by
	// Orphan.
	ControllerIndex = "controller"
	// SetIndex finds claims by the name of the set in their label, and those without by all that their name allows for.
	SetIndex = "set"
	// SelectorIndex finds sets by one of the labels that their selector asks for, as "key=value", and those that ask for
	// none by AnyLabel.
	SelectorIndex = "selector"

	// Orphan is the value of ControllerIndex for an object without a controller.
	Orphan = "none"
	// AnyLabel is the value of SelectorIndex for a selector made of expressions only.
	AnyLabel = "*"
)

// Index is a field by which the cache must be able to find the objects of a kind.
type Index struct {
	Object  client.Object
	Field   string
	Extract client.IndexerFunc
}

// Indexes are all that the controller needs of its cache.
func Indexes() []Index {
	return []Index{
		{Object: &corev1.Pod{}, Field: ControllerIndex, Extract: controllerOf},
		{Object: &appsv1.ControllerRevision{}, Field: ControllerIndex, Extract: controllerOf},
		{Object: &corev1.PersistentVolumeClaim{}, Field: SetIndex, Extract: SetsOf},
		{Object: &v1beta1.RollSet{}, Field: SelectorIndex, Extract: selectorOf},
	}
}

// IndexFields adds all Indexes to a cache.
func IndexFields(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range Indexes() {
		if err := indexer.IndexField(ctx, i.Object, i.Field, i.Extract); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.Object, i.Field, err)
		}
	}
	return nil
}

func controllerOf(o client.Object) []string {
	switch owner := metav1.GetControllerOfNoCopy(o); {
	case owner == nil:
		return []string{Orphan}
	case !isSet(owner):
		return nil
	default:
		return []string{string(owner.UID)}
	}
}

// SetsOf returns the names of the sets that a claim may belong to: the one of its label, or all that its name allows for if the label
// is missing or names a set whose claims have other names.
func SetsOf(claim client.Object) []string {
	if name, ok := claim.GetLabels()[v1beta1.SetLabel]; ok && identity.Names(claim.GetName(), name) {
		return []string{name}
	}
	return identity.SetsNamed(claim.GetName())
}

func selectorOf(o client.Object) []string {
	set, ok := o.(*v1beta1.RollSet)
	if !ok || set.Spec.Selector == nil {
		return nil
	}
	labels := set.Spec.Selector.MatchLabels
	if len(labels) == 0 {
		return []string{AnyLabel}
	}
	keys := make([]string, 0, len(labels))
	for k := range labels {
		keys = append(keys, k)
	}
	first := slices.Min(keys)
	return []string{first + "=" + labels[first]}
}
