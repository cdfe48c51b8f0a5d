// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan/observe"
)

// view is what the cache shows of a set and of all that it owns.
type view struct {
	observe.Objects

	// memory is what is remembered of the set.
	memory *recollection
	// spec is what the spec says, and invalid what is wrong with it if it cannot be understood.
	spec    observe.Spec
	invalid error
	// objects are those of the view by their UIDs, once they are asked for.
	objects map[string]metav1.Object
	// chores are the writes of revisions that are wanted.
	chores []action.Key
	// replicas are the pods and claims by identity.
	replicas []snapshot.Replica
	// cache says how far the cache had come before pods were listed.
	cache expectations.Cache
}

// open begins a view of a set: what is known of it without a list of what it owns, and how far the cache has come.
func (r *Reconciler) open(set *v1alpha1.RollSet) (*view, error) {
	v := &view{Objects: observe.Objects{Set: set, Now: r.Clock.Now()}, memory: r.memory.of(set.UID)}
	v.spec, v.invalid = observe.Resolve(&set.Spec)
	var err error
	if v.Selector, err = metav1.LabelSelectorAsSelector(set.Spec.Selector); err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	v.cache.Synced = map[schema.GroupKind]string{}
	for kind := range informer.Watched() {
		v.cache.Synced[kind] = r.Watermarks(kind, set.Namespace)
	}
	return v, nil
}

// look reads from the cache what the set owns.
func (r *Reconciler) look(ctx context.Context, v *view) (err error) {
	if v.Pods, err = r.Pods(ctx, v.Set.Namespace, string(v.Set.UID)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	v.cache.Pods = v.Pods
	orphans, err := r.Pods(ctx, v.Set.Namespace, informer.Orphan)
	if err != nil {
		return fmt.Errorf("list orphans: %w", err)
	}
	v.Orphans = slices.DeleteFunc(orphans, func(pod *corev1.Pod) bool { return !v.Selector.Matches(labels.Set(pod.Labels)) })
	revisions := &appsv1.ControllerRevisionList{}
	if err := r.list(ctx, revisions, v, client.MatchingFields{informer.ControllerIndex: string(v.Set.UID)}); err != nil {
		return fmt.Errorf("list revisions: %w", err)
	}
	for i := range revisions.Items {
		v.Revisions = append(v.Revisions, &revisions.Items[i])
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.list(ctx, claims, v, client.MatchingFields{informer.SetIndex: v.Set.Name}); err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	v.Claims = claims.Items
	if len(v.Set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	v.Classes, err = r.classes(ctx)
	return err
}

// classes lists the storage classes; there are few.
func (r *Reconciler) classes(ctx context.Context) (map[string]snapshot.Class, error) {
	list := &storagev1.StorageClassList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list storage classes: %w", err)
	}
	return observe.ClassesOf(list.Items), nil
}

// list lists objects of the set's namespace without copying them.
func (r *Reconciler) list(ctx context.Context, into client.ObjectList, v *view, by client.MatchingFields) error {
	return r.Client.List(ctx, into, client.InNamespace(v.Set.Namespace), by, client.UnsafeDisableDeepCopy)
}
