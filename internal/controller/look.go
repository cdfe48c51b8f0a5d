// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/watch"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
)

// view is what the cache shows of a set and of all that it owns. The objects belong to the cache: nobody changes them.
type view struct {
	set      *v1alpha1.RollSet
	selector labels.Selector
	now      time.Time
	// memory is what is remembered of the set, and router what was seen of pods in events.
	memory *recollection
	router *watch.Router
	// resolved is what the spec says, and invalid what is wrong with it if it cannot be understood.
	resolved resolved
	invalid  error

	// pods and revisions are those that the set controls, claims those that carry its
	// label, or its name in theirs.
	pods      []*corev1.Pod
	revisions []*appsv1.ControllerRevision
	claims    []corev1.PersistentVolumeClaim
	// orphans are pods without a controller that the selector matches.
	orphans []*corev1.Pod
	// objects are those of the view by their UIDs, once they are asked for.
	objects map[string]metav1.Object
	// chores are the writes of revisions that are wanted.
	chores []action.Key
	// gone are the names of pods that have gone since the last look.
	gone []string
	// replicas are the pods and claims by identity.
	replicas []snapshot.Replica
	// classes are the storage classes, if the set asks for claims.
	classes map[string]snapshot.Class
	// cache says how far the cache had come before pods were listed.
	cache expectations.Cache
}

// open begins a view of a set: what is known of it without a list of what it owns, and how far the cache has come.
func (r *Reconciler) open(set *v1alpha1.RollSet) (*view, error) {
	v := &view{set: set, now: r.Clock.Now(), memory: r.memory.of(set.UID), router: &r.router}
	v.resolved, v.invalid = resolveSpec(&set.Spec)
	var err error
	if v.selector, err = metav1.LabelSelectorAsSelector(set.Spec.Selector); err != nil {
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
	if v.pods, err = r.Pods(ctx, v.set.Namespace, string(v.set.UID)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	v.cache.Pods = v.pods
	orphans, err := r.Pods(ctx, v.set.Namespace, informer.Orphan)
	if err != nil {
		return fmt.Errorf("list orphans: %w", err)
	}
	v.orphans = slices.DeleteFunc(orphans, func(pod *corev1.Pod) bool { return !v.selector.Matches(labels.Set(pod.Labels)) })
	revisions := &appsv1.ControllerRevisionList{}
	if err := r.list(ctx, revisions, v, client.MatchingFields{informer.ControllerIndex: string(v.set.UID)}); err != nil {
		return fmt.Errorf("list revisions: %w", err)
	}
	for i := range revisions.Items {
		v.revisions = append(v.revisions, &revisions.Items[i])
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.list(ctx, claims, v, client.MatchingFields{informer.SetIndex: v.set.Name}); err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	v.claims = claims.Items
	if len(v.set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	v.classes, err = r.classes(ctx)
	return err
}

// classes lists the storage classes; there are few.
func (r *Reconciler) classes(ctx context.Context) (map[string]snapshot.Class, error) {
	list := &storagev1.StorageClassList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list storage classes: %w", err)
	}
	return ClassesOf(list.Items), nil
}

// ClassesOf returns what matters of storage classes, by their names.
func ClassesOf(items []storagev1.StorageClass) map[string]snapshot.Class {
	classes := make(map[string]snapshot.Class, len(items))
	for i := range items {
		expandable, mode := items[i].AllowVolumeExpansion, items[i].VolumeBindingMode
		classes[items[i].Name] = snapshot.Class{
			Expandable: expandable != nil && *expandable,
			Immediate:  mode == nil || *mode == storagev1.VolumeBindingImmediate,
		}
	}
	return classes
}

// list lists objects of the set's namespace without copying them.
func (r *Reconciler) list(ctx context.Context, into client.ObjectList, v *view, by client.MatchingFields) error {
	return r.Client.List(ctx, into, client.InNamespace(v.set.Namespace), by, client.UnsafeDisableDeepCopy)
}
