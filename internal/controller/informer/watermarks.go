// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Watermarks returns the resourceVersion that the cache of a kind has reached for a namespace: whatever was written up
// to it is in the cache. It is empty where that is unknown.
type Watermarks func(kind schema.GroupKind, namespace string) string

// NewWatermarks returns the watermarks of a manager's cache.
func NewWatermarks(ctx context.Context, informers cache.Informers) (Watermarks, error) {
	marks := map[schema.GroupKind]func(namespace string) string{}
	for kind, object := range Watched() {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Kind, err)
		}
		if shared, ok := informer.(toolscache.SharedIndexInformer); ok {
			marks[kind] = func(string) string { return shared.GetStore().LastStoreSyncResourceVersion() }
			continue
		}
		// A cache of several namespaces has one store for each and shows none of them. What its handlers have been told
		// is in the store already.
		seen := &seen{newest: map[string]string{}}
		if _, err := informer.AddEventHandler(seen); err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Kind, err)
		}
		marks[kind] = seen.in
	}
	return func(kind schema.GroupKind, namespace string) string {
		if mark, ok := marks[kind]; ok {
			return mark(namespace)
		}
		return ""
	}, nil
}

// seen remembers the newest resourceVersion of each namespace that a handler was told of.
type seen struct {
	mu     sync.RWMutex
	newest map[string]string
}

// in is older than any write where nothing was seen yet.
func (s *seen) in(namespace string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if rv, ok := s.newest[namespace]; ok {
		return rv
	}
	return "1"
}

// OnAdd implements the handler of an informer.
func (s *seen) OnAdd(object any, _ bool) { s.note(object) }

// OnUpdate implements the handler of an informer.
func (s *seen) OnUpdate(_, object any) { s.note(object) }

// OnDelete implements the handler of an informer.
func (s *seen) OnDelete(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj // its resourceVersion is older than the deletion, so it promises less
	}
	s.note(object)
}

func (s *seen) note(object any) {
	o, err := meta.Accessor(object)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.newest[o.GetNamespace()]
	if ok {
		order, err := resourceversion.CompareResourceVersion(last, o.GetResourceVersion())
		if err != nil || order >= 0 {
			return
		}
	}
	s.newest[o.GetNamespace()] = o.GetResourceVersion()
}
