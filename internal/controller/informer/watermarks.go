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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watermarks returns the resourceVersion that the cache of a kind has reached for a namespace: the cache shows all writes up to
// it. It is empty where that is unknown.
type Watermarks func(kind schema.GroupKind, namespace string) string

// Marks knows the watermarks of a manager's cache.
type Marks struct {
	mu    sync.RWMutex
	kinds map[schema.GroupKind]Watermark
}

// Watermark is the watermark of one kind in a namespace.
type Watermark func(namespace string) string

// NewMarks returns the watermarks of all Watched kinds in a manager's cache.
func NewMarks(ctx context.Context, informers cache.Informers) (*Marks, error) {
	m := &Marks{kinds: map[schema.GroupKind]Watermark{}}
	for kind, object := range Watched() {
		if err := m.add(ctx, informers, kind, object); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Of returns the watermark of a kind in a namespace. It is a Watermarks.
func (m *Marks) Of(kind schema.GroupKind, namespace string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if mark, ok := m.kinds[kind]; ok {
		return mark(namespace)
	}
	return ""
}

func (m *Marks) add(ctx context.Context, informers cache.Informers, kind schema.GroupKind, object client.Object) error {
	informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	mark, err := markOf(informer)
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind.Kind, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kinds[kind] = mark
	return nil
}

// Show returns what adds an optional kind when its watch has begun.
func (m *Marks) Show(informers cache.Informers) func(ctx context.Context, kind client.Object) error {
	return func(ctx context.Context, kind client.Object) error { return m.add(ctx, informers, KindOf(kind), kind) }
}

// Hide removes an optional kind whose watch has ended.
func (m *Marks) Hide(kind client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kinds, KindOf(kind))
}

// markOf returns the watermark of an informer. A cache of several namespaces has one store for each and exposes none of them. But
// the store contains an object before the handlers get its event.
func markOf(informer cache.Informer) (Watermark, error) {
	if shared, ok := informer.(toolscache.SharedIndexInformer); ok {
		return func(string) string { return shared.GetStore().LastStoreSyncResourceVersion() }, nil
	}
	seen := &seen{newest: map[string]string{}}
	_, err := informer.AddEventHandler(seen)
	return seen.in, err
}

// seen remembers the newest resourceVersion in the events of each namespace.
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
