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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// record keeps the events of the API server about the objects of one namespace: how they are now, and every change of the pods
// and claims since the record began. It uses watches, so it misses nothing, except for what happens while the API server is
// away.
type record struct {
	mu sync.Mutex
	// changed is closed, and replaced, at each change.
	changed chan struct{}
	// moved is when an object was last created, began to terminate, or vanished.
	moved time.Time

	sets      timeline[*v1beta1.RollSet]
	pods      timeline[*corev1.Pod]
	claims    timeline[*corev1.PersistentVolumeClaim]
	revisions timeline[*appsv1.ControllerRevision]
	// lists list each kind anew. What they return reports whether the record shows that list.
	lists []func(context.Context) (isShown func() bool, err error)
}

// timeline is everything that happened to the objects of one kind. The objects are shared and must not be changed.
type timeline[T client.Object] struct {
	now     map[types.UID]T
	changes []change[T]
	// version is the newest resource version that was seen.
	version uint64
	// lists is how many times the objects were listed. More than once means that a watch was cut, and what happened meanwhile is unknown.
	lists int
}

// change is one version of an object, or its end.
type change[T client.Object] struct {
	object T
	gone   bool
	at     time.Time
	// listing is true if the rest of a list was still to be entered. A watch that was cut begins with a list again, which
	// reports what was missed in another order than it happened in. What is known in its middle was never true.
	listing bool
}

// newRecord records a namespace until ctx ends.
func newRecord(ctx context.Context, e *environment, namespace string) (*record, error) {
	r := &record{changed: make(chan struct{}), moved: time.Now()}
	for _, listed := range []<-chan struct{}{
		follow(ctx, r, &r.sets, source[v1beta1.RollSetList](e, namespace)),
		follow(ctx, r, &r.pods, source[corev1.PodList](e, namespace)),
		follow(ctx, r, &r.claims, source[corev1.PersistentVolumeClaimList](e, namespace)),
		follow(ctx, r, &r.revisions, source[appsv1.ControllerRevisionList](e, namespace)),
	} {
		select {
		case <-listed:
		case <-ctx.Done():
			return nil, fmt.Errorf("watch: %w", context.Cause(ctx))
		}
	}
	return r, nil
}

// source lists and watches, in a namespace, the objects of the kind that L is a list of.
func source[L any, P interface {
	*L
	client.ObjectList
}](e *environment, namespace string) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := P(new(L))
			return list, e.client.List(ctx, list, &client.ListOptions{Namespace: namespace, Raw: &o})
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return e.client.Watch(ctx, P(new(L)), &client.ListOptions{Namespace: namespace, Raw: &o})
		},
	}
}

// follow enters the changes of one kind into its timeline, until ctx ends. The returned channel is closed once the existing
// objects have been listed.
func follow[T client.Object](ctx context.Context, r *record, t *timeline[T], from *cache.ListWatch) <-chan struct{} {
	t.now = map[types.UID]T{}
	to := &store[T]{record: r, timeline: t, listed: make(chan struct{})}
	go cache.NewReflectorWithOptions(from, *new(T), to, cache.ReflectorOptions{}).RunWithContext(ctx)
	r.lists = append(r.lists, func(ctx context.Context) (func() bool, error) {
		list, err := from.ListWithContext(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		return isShown(t, list)
	})
	return to.listed
}

// isShown returns a function that reports whether a timeline shows a list. It does if it is newer, or the same.
func isShown[T client.Object](t *timeline[T], list runtime.Object) (func() bool, error) {
	whole, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("read a list: %w", err)
	}
	at, err := strconv.ParseUint(whole.GetResourceVersion(), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the version of a list: %w", err)
	}
	versions := map[types.UID]uint64{}
	if err := meta.EachListItem(list, func(o runtime.Object) error {
		object, err := meta.Accessor(o)
		if err == nil {
			versions[object.GetUID()] = version(object)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("read a list: %w", err)
	}
	return func() bool {
		return t.version >= at || maps.EqualFunc(t.now, versions, func(now T, v uint64) bool { return version(now) == v })
	}, nil
}

// store enters what a watch reports into a timeline.
type store[T client.Object] struct {
	record   *record
	timeline *timeline[T]
	once     sync.Once
	listed   chan struct{}
}

func (s *store[T]) Add(o any) error    { return s.enter(o, false) }
func (s *store[T]) Update(o any) error { return s.enter(o, false) }
func (s *store[T]) Delete(o any) error { return s.enter(o, true) }
func (s *store[T]) Resync() error      { return nil }

func (s *store[T]) enter(o any, gone bool) error {
	object, ok := o.(T)
	if !ok {
		return fmt.Errorf("a watch told of a %T", o)
	}
	object.SetManagedFields(nil)
	s.record.note(func(now time.Time) (moved bool) {
		return s.timeline.note(change[T]{object: object, gone: gone, at: now})
	})
	return nil
}

// Replace enters a list: all its objects, and the ends of those that it no longer has.
func (s *store[T]) Replace(list []any, _ string) error {
	objects := make([]T, len(list))
	for i, o := range list {
		object, ok := o.(T)
		if !ok {
			return fmt.Errorf("a list has a %T", o)
		}
		object.SetManagedFields(nil)
		objects[i] = object
	}
	s.record.note(func(now time.Time) (moved bool) { return s.timeline.list(objects, now) })
	s.once.Do(func() { close(s.listed) })
	return nil
}

// note adds an entry and wakes those who wait for one.
func (r *record) note(enter func(time.Time) (moved bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); enter(now) {
		r.moved = now
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// note enters a change, and reports whether the object was created, began to terminate, or vanished.
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

// list enters the objects of a list, and reports whether one was created, began to terminate, or vanished.
func (t *timeline[T]) list(objects []T, now time.Time) (moved bool) {
	t.lists++
	var changes []change[T]
	missing := maps.Clone(t.now)
	for _, o := range objects {
		changes = append(changes, change[T]{object: o, at: now, listing: true})
		delete(missing, o.GetUID())
	}
	for o := range maps.Values(missing) {
		changes = append(changes, change[T]{object: o, gone: true, at: now, listing: true})
	}
	for i, c := range changes {
		c.listing = i < len(changes)-1
		moved = t.note(c) || moved
	}
	return moved
}

// version returns an object's resource version. Within one cluster, versions grow.
func version(o metav1.Object) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64) // a version that is not a number counts as the oldest
	return n
}

// next returns a channel that is closed at the next change.
func (r *record) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// still returns how long no object was created, began to terminate, or vanished.
func (r *record) still() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.moved)
}

// read returns something of the record, at one instant.
func read[T any](r *record, get func() T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return get()
}

// sorted returns the matching objects, by name.
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
