// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Nodes returns all nodes. They belong to the cache and must not be changed.
type Nodes func(ctx context.Context) ([]*corev1.Node, error)

// NewNodes returns the nodes of a manager's cache, which is read by the reader. A list by the reader would copy a kilobyte of
// each node at each look. The informer is asked for at each call, because it comes and goes with the rights to nodes.
func NewNodes(informers cache.Informers, reader client.Reader) Nodes {
	return func(ctx context.Context) ([]*corev1.Node, error) {
		informer, err := informers.GetInformer(ctx, &corev1.Node{})
		if err != nil {
			return nil, err
		}
		if shared, ok := informer.(toolscache.SharedIndexInformer); ok {
			return only[*corev1.Node](shared.GetStore().List()), nil
		}
		return ListedNodes(reader)(ctx) // a cache of several namespaces shows none of its stores
	}
}

// ListedNodes reads from any cache.
func ListedNodes(reader client.Reader) Nodes {
	return func(ctx context.Context) ([]*corev1.Node, error) {
		list := &corev1.NodeList{}
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		return pointers(list.Items), nil
	}
}

// only returns the objects of a type.
func only[T any](objects []any) []T {
	found := make([]T, 0, len(objects))
	for _, object := range objects {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// pointers returns pointers to the items of a list.
func pointers[T any](items []T) []*T {
	found := make([]*T, len(items))
	for i := range items {
		found[i] = &items[i]
	}
	return found
}
