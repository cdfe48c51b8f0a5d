// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
)

// record is what the API server tells of the objects of one namespace: how they are now, and every change of the pods
// and claims since the record began. It is taken by watches, so that it misses nothing between two looks.
type record struct {
	mu sync.Mutex
	// changed is closed, and replaced, at each change.
	changed chan struct{}
	// moved is when an object last came, began to terminate, or went.
	moved time.Time

	sets      timeline[*v1alpha1.RollSet]
	pods      timeline[*corev1.Pod]
	claims    timeline[*corev1.PersistentVolumeClaim]
	revisions timeline[*appsv1.ControllerRevision]
}

// timeline is all that happened to the objects of one kind. The objects are shared and not to be changed.
type timeline[T client.Object] struct {
	now     map[types.UID]T
	changes []change[T]
	// version is the newest resource version that was seen.
	version uint64
}

// change is one version of an object, or its end.
type change[T client.Object] struct {
	object T
	gone   bool
	at     time.Time
}

// newRecord records a namespace until ctx ends.
func newRecord(ctx context.Context, e *environment, namespace string) (*record, error) {
	r := &record{changed: make(chan struct{}), moved: time.Now()}
	objects, err := cache.New(e.config, cache.Options{
		Scheme: e.client.Scheme(), Mapper: e.client.RESTMapper(),
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("make watches: %w", err)
	}
	for _, err := range []error{
		follow(ctx, r, objects, &v1alpha1.RollSet{}, &r.sets),
		follow(ctx, r, objects, &corev1.Pod{}, &r.pods),
		follow(ctx, r, objects, &corev1.PersistentVolumeClaim{}, &r.claims),
		follow(ctx, r, objects, &appsv1.ControllerRevision{}, &r.revisions),
	} {
		if err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
	}
	go func() { _ = objects.Start(ctx) }()
	if !objects.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("watch: %w", context.Cause(ctx))
	}
	return r, nil
}

// follow enters the changes of one kind into its timeline.
func follow[T client.Object](ctx context.Context, r *record, objects cache.Cache, kind T, t *timeline[T]) error {
	t.now = map[types.UID]T{}
	informer, err := objects.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	enter := func(o any, gone bool) {
		if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if object, ok := o.(T); ok {
			r.note(func(now time.Time) (moved bool) { return t.note(change[T]{object: object, gone: gone, at: now}) })
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { enter(o, false) },
		UpdateFunc: func(before, after any) {
			// A deletion that was missed, with a namesake created after it, looks like an update.
			if a, ok := before.(T); ok {
				if b, ok := after.(T); ok && a.GetUID() != b.GetUID() {
					enter(before, true)
				}
			}
			enter(after, false)
		},
		DeleteFunc: func(o any) { enter(o, true) },
	})
	return err
}

// note makes an entry and wakes those who wait for one.
func (r *record) note(enter func(time.Time) (moved bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); enter(now) {
		r.moved = now
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// note enters a change, and says whether the object came, began to terminate, or went.
func (t *timeline[T]) note(c change[T]) (moved bool) {
	before, known := t.now[c.object.GetUID()]
	moved = !known || c.gone || (before.GetDeletionTimestamp() == nil) != (c.object.GetDeletionTimestamp() == nil)
	t.changes = append(t.changes, c)
	t.now[c.object.GetUID()] = c.object
	if c.gone {
		delete(t.now, c.object.GetUID())
	}
	t.version = max(t.version, version(c.object))
	return moved
}

// version is an object's resource version: within one cluster, they grow.
func version(o client.Object) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64) // one that is no number counts as the oldest
	return n
}

// next returns a channel that is closed at the next change.
func (r *record) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// still is how long no object has come, begun to terminate, or gone.
func (r *record) still() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.moved)
}

// read returns something of the record, seen at one instant.
func read[T any](r *record, get func() T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return get()
}

// sorted returns those objects that are wanted, by name.
func sorted[T client.Object](objects map[types.UID]T, wanted func(T) bool) []T {
	var list []T
	for o := range maps.Values(objects) {
		if wanted(o) {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}
