// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods returns the pods of a namespace that have a value in ControllerIndex, or all if the value is empty. They belong to the cache
// and must not be changed.
type Pods func(ctx context.Context, namespace, controller string) ([]*corev1.Pod, error)

// NewPods returns the pods of a manager's cache, which is read by the reader.
func NewPods(ctx context.Context, informers cache.Informers, reader client.Reader) (Pods, error) {
	informer, err := informers.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if shared, ok := informer.(toolscache.SharedIndexInformer); ok {
		return indexedPods(shared.GetIndexer()), nil
	}
	return ListedPods(reader), nil // a cache of several namespaces shows none of its indexers
}

// indexedPods reads from the indexer of a cache with the fields of IndexFields. A list by the cache's reader would copy as
// much as a kilobyte of each pod at each look.
func indexedPods(indexer toolscache.Indexer) Pods {
	return func(_ context.Context, namespace, controller string) ([]*corev1.Pod, error) {
		index, value := "field:"+ControllerIndex, namespace+"/"+controller // as controller-runtime has it
		if controller == "" {
			index, value = toolscache.NamespaceIndex, namespace
		}
		objects, err := indexer.ByIndex(index, value)
		if err != nil {
			return nil, err
		}
		return only[*corev1.Pod](objects), nil
	}
}

// ListedPods reads from any cache with the fields of IndexFields.
func ListedPods(reader client.Reader) Pods {
	return func(ctx context.Context, namespace, controller string) ([]*corev1.Pod, error) {
		list, options := &corev1.PodList{}, []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
		if controller != "" {
			options = append(options, client.MatchingFields{ControllerIndex: controller})
		}
		if err := reader.List(ctx, list, options...); err != nil {
			return nil, err
		}
		return pointers(list.Items), nil
	}
}
