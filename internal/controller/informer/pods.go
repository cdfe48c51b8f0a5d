// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods reads the pods in a cache. The returned objects belong to the cache and must not be changed. Of a pod of another controller,
// a cache may keep only the metadata.
type Pods interface {
	// With returns the pods of a namespace that have a value in ControllerIndex.
	With(ctx context.Context, namespace, controller string) ([]*corev1.Pod, error)
	// All returns all pods of a namespace.
	All(ctx context.Context, namespace string) ([]client.Object, error)
	// Named returns the pod with a name; nil if there is none.
	Named(ctx context.Context, name types.NamespacedName) (client.Object, error)
}

// NewPods returns the pods of a manager's cache, which is read by the reader.
func NewPods(ctx context.Context, informers cache.Informers, reader client.Reader) (Pods, error) {
	informer, err := informers.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if shared, ok := informer.(toolscache.SharedIndexInformer); ok {
		return indexedPods{shared.GetIndexer()}, nil
	}
	return listedPods{reader}, nil // a cache of several namespaces shows none of its indexers
}

// indexedPods reads from the indexer of a cache with the fields of IndexFields. A list by the cache's reader would copy as
// much as a kilobyte of each pod at each look, and wants all pods to be of one type.
type indexedPods struct{ indexer toolscache.Indexer }

// With implements Pods.
func (p indexedPods) With(_ context.Context, namespace, controller string) ([]*corev1.Pod, error) {
	objects, err := p.indexer.ByIndex("field:"+ControllerIndex, namespace+"/"+controller) // as controller-runtime has it
	if err != nil {
		return nil, err
	}
	return only[*corev1.Pod](objects), nil
}

// All implements Pods.
func (p indexedPods) All(_ context.Context, namespace string) ([]client.Object, error) {
	objects, err := p.indexer.ByIndex(toolscache.NamespaceIndex, namespace)
	if err != nil {
		return nil, err
	}
	return only[client.Object](objects), nil
}

// Named implements Pods.
func (p indexedPods) Named(_ context.Context, name types.NamespacedName) (client.Object, error) {
	object, _, err := p.indexer.GetByKey(name.String())
	pod, _ := object.(client.Object)
	return pod, err
}

// listedPods reads from a cache of several namespaces with the fields of IndexFields.
type listedPods struct{ reader client.Reader }

// With implements Pods.
func (p listedPods) With(ctx context.Context, namespace, controller string) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	err := p.reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{ControllerIndex: controller}, client.UnsafeDisableDeepCopy)
	return pointers(list.Items), err
}

// All implements Pods.
func (p listedPods) All(ctx context.Context, namespace string) ([]client.Object, error) {
	list := &corev1.PodList{}
	err := p.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	found := make([]client.Object, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	return found, err
}

// Named implements Pods.
func (p listedPods) Named(ctx context.Context, name types.NamespacedName) (client.Object, error) {
	pod := &corev1.Pod{}
	if err := p.reader.Get(ctx, name, pod, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return pod, nil
}
