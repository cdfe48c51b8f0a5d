// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package expectations remembers what was written, so that nobody decides on a cache that does not show it yet.
//
// The rule: after a write, the owner is left alone until the cache has caught up with it. Creates and patches are
// remembered by the resourceVersion that the API server returned, and shown once the cache of the kind has reached it.
// A delete is remembered by the UID of what was deleted, and shown once that is terminating or gone. A write of which
// nobody knows whether it happened counts as one that may have; it is waited for only briefly, because looking again is
// then the only way to know. Everything expires, so a lost event delays and never wedges.
//
// Owners and pods are known by UID, never by name: a namesake inherits nothing.
package expectations

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
)

const (
	// Timeout is how long a write that certainly happened is waited for.
	Timeout = 5 * time.Minute
	// DoubtTimeout is how long a write that may have happened is waited for.
	DoubtTimeout = 10 * time.Second
)

// Cache is what a reconcile sees.
type Cache struct {
	// Synced is the resourceVersion that the cache of each kind had reached before Pods was listed: read afterwards, it
	// could promise writes that the list does not have. A kind without one is not waited for.
	Synced map[schema.GroupKind]string
	// Pods are all pods of the owner.
	Pods []*corev1.Pod
}

// Store holds the expectations of all owners. It is safe for concurrent use.
type Store struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	owners  map[types.UID]*entry
	expired int
}

// entry is what is expected of one owner.
type entry struct {
	// since is when the first of it was expected.
	since   time.Time
	written map[schema.GroupKind]write
	// deleted holds the UIDs of deleted pods, created the names of pods that may have been created, each with the time
	// at which it is no longer waited for.
	deleted map[types.UID]time.Time
	created map[string]time.Time
	// updated holds the UIDs of pods that may have been changed.
	updated map[types.UID]write
}

type write struct {
	resourceVersion string
	until           time.Time
}

// New returns an empty store.
func New(c clock.PassiveClock) *Store {
	return &Store{clock: c, owners: map[types.UID]*entry{}}
}

// Wrote expects the cache of a kind to reach the resourceVersion that a create or patch returned.
func (s *Store) Wrote(owner types.UID, kind schema.GroupKind, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(owner)
	if last, ok := e.written[kind]; ok && reached(last.resourceVersion, resourceVersion) {
		resourceVersion = last.resourceVersion // parallel writes return in any order
	}
	e.written[kind] = write{resourceVersion: resourceVersion, until: s.clock.Now().Add(Timeout)}
}

// Deleting expects a pod to be terminating or gone. Call it before the delete is sent.
func (s *Store) Deleting(owner, pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry(owner).deleted[pod] = s.clock.Now().Add(Timeout)
}

// Unfulfillable takes back the expectation of a delete that certainly did not happen.
func (s *Store) Unfulfillable(owner, pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entry(owner).deleted, pod)
}

// DoubtDelete says of an expected delete that it may or may not have happened.
func (s *Store) DoubtDelete(owner, pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry(owner).deleted[pod] = s.clock.Now().Add(DoubtTimeout)
}

// DoubtCreate expects to see a pod of which nobody knows whether it was created.
func (s *Store) DoubtCreate(owner types.UID, podName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry(owner).created[podName] = s.clock.Now().Add(DoubtTimeout)
}

// DoubtUpdate expects to see a pod changed since it had a resourceVersion, though nobody knows whether it was.
func (s *Store) DoubtUpdate(owner, pod types.UID, seen string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry(owner).updated[pod] = write{resourceVersion: seen, until: s.clock.Now().Add(DoubtTimeout)}
}

// Met says whether the cache shows all that is expected of the owner; if not, remaining is how long the last of it is
// waited for at most. What the cache shows, and what has expired, is forgotten.
func (s *Store) Met(owner types.UID, cache Cache) (met bool, remaining time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.owners[owner]
	if !ok {
		return true, 0
	}
	e.forgetShown(cache)
	now := s.clock.Now()
	last := s.forgetExpired(e, now)
	if e.empty() {
		delete(s.owners, owner)
		return true, 0
	}
	return false, last.Sub(now)
}

// Reached says whether the caches have come as far as the owner's writes, as Met would; that they have is necessary for
// Met, not enough. It needs no list, and forgets nothing.
func (s *Store) Reached(owner types.UID, synced map[schema.GroupKind]string) (all bool, remaining time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.owners[owner]
	if !ok {
		return true, 0
	}
	now := s.clock.Now()
	for kind, w := range e.written {
		if !reached(synced[kind], w.resourceVersion) {
			remaining = max(remaining, w.until.Sub(now))
		}
	}
	return remaining <= 0, remaining
}

// Forget drops all that is expected of an owner that no longer exists.
func (s *Store) Forget(owner types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owners, owner)
}

// Unmet is the number of owners of which something is expected.
func (s *Store) Unmet() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.owners)
}

// Oldest is for how long something has been expected of the owner that has waited longest; zero if nothing is.
func (s *Store) Oldest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest time.Duration
	now := s.clock.Now()
	for _, e := range s.owners {
		oldest = max(oldest, now.Sub(e.since))
	}
	return oldest
}

// Expired is how many expectations were given up since the start because the cache never showed them.
func (s *Store) Expired() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expired
}

func (s *Store) entry(owner types.UID) *entry {
	e, ok := s.owners[owner]
	if !ok {
		e = &entry{
			since:   s.clock.Now(),
			written: map[schema.GroupKind]write{},
			deleted: map[types.UID]time.Time{},
			created: map[string]time.Time{},
			updated: map[types.UID]write{},
		}
		s.owners[owner] = e
	}
	return e
}

// forgetExpired drops what is due at now and returns when the last of the rest is.
func (s *Store) forgetExpired(e *entry, now time.Time) (last time.Time) {
	due := func(until time.Time) bool {
		if !until.After(now) {
			s.expired++
			return true
		}
		if until.After(last) {
			last = until
		}
		return false
	}
	maps.DeleteFunc(e.written, func(_ schema.GroupKind, w write) bool { return due(w.until) })
	maps.DeleteFunc(e.deleted, func(_ types.UID, until time.Time) bool { return due(until) })
	maps.DeleteFunc(e.created, func(_ string, until time.Time) bool { return due(until) })
	maps.DeleteFunc(e.updated, func(_ types.UID, w write) bool { return due(w.until) })
	return last
}

// forgetShown drops what the cache shows.
func (e *entry) forgetShown(cache Cache) {
	maps.DeleteFunc(e.written, func(kind schema.GroupKind, w write) bool {
		return reached(cache.Synced[kind], w.resourceVersion)
	})
	if len(e.deleted)+len(e.created)+len(e.updated) == 0 {
		return
	}
	unchanged := make(map[types.UID]bool, len(e.updated))
	alive := make(map[types.UID]bool, len(e.deleted))
	for _, pod := range cache.Pods {
		if _, ok := e.deleted[pod.UID]; ok && pod.DeletionTimestamp == nil {
			alive[pod.UID] = true
		}
		if w, ok := e.updated[pod.UID]; ok && w.resourceVersion == pod.ResourceVersion {
			unchanged[pod.UID] = true
		}
		delete(e.created, pod.Name)
	}
	maps.DeleteFunc(e.updated, func(pod types.UID, _ write) bool { return !unchanged[pod] })
	maps.DeleteFunc(e.deleted, func(pod types.UID, _ time.Time) bool { return !alive[pod] })
}

func (e *entry) empty() bool { return len(e.written)+len(e.deleted)+len(e.created)+len(e.updated) == 0 }

// reached says whether a cache that is at one resourceVersion shows a write that returned another. Where the two cannot
// be compared there is nothing to wait for.
func reached(synced, written string) bool {
	order, err := resourceversion.CompareResourceVersion(synced, written)
	return err != nil || order >= 0
}
