// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package expectations remembers what was written, so that no decision is made on a cache that does not show it yet.
//
// The rule: after a write, the owner is left alone until the cache has caught up. Creates and patches are remembered by the
// resourceVersion that the API server returned, and are met once the cache of the kind has reached it. A delete is
// remembered by the UID of the deleted object, and is met once that object is terminating or gone. A write with an unknown
// result counts as one that may have happened. It is waited for only briefly: then the owner looks past the cache, because
// that is the only way to find out. Every expectation expires, so a lost event causes a delay and never a deadlock.
//
// Owners and pods are known by UID, never by name: a new object with an old name inherits nothing.
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
	// Timeout is how long to wait for a write that certainly happened.
	Timeout = 5 * time.Minute
	// UnsettledTimeout is how long to wait for a write that may have happened.
	UnsettledTimeout = 10 * time.Second
)

// Cache holds the answers of the cache to one reconcile.
type Cache struct {
	// Synced is the resourceVersion that the cache of each kind had reached before Pods was listed. Read afterwards, it
	// could cover writes that the list does not have. A kind without one is not waited for.
	Synced map[schema.GroupKind]string
	// Pods holds all pods of the owner.
	Pods []*corev1.Pod
}

// Store holds the expectations of all owners. It is safe for concurrent use.
type Store struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	owners  map[types.UID]*entry
	expired int
}

// entry holds the expectations of one owner.
type entry struct {
	// since is when the first expectation was added.
	since   time.Time
	written map[schema.GroupKind]write
	// deleted holds the UIDs of deleted pods, and created the names of pods that may have been created. Each has the time at
	// which it is no longer waited for.
	deleted map[types.UID]time.Time
	created map[string]time.Time
	// updated holds the UIDs of pods that may have been changed.
	updated map[types.UID]write
	// doubted is true if a pod that is expected was not shown in time, or is shown with a change that may be another client's, until the
	// owner has looked past the cache.
	doubted bool
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

// Unfulfillable removes the expectation of a delete that certainly did not happen.
func (s *Store) Unfulfillable(owner, pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entry(owner).deleted, pod)
}

// UnsettledDelete marks an expected delete as one that may not have happened.
func (s *Store) UnsettledDelete(owner, pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry(owner).deleted[pod] = s.clock.Now().Add(UnsettledTimeout)
}

// UnsettledCreate expects a pod that may have been created.
func (s *Store) UnsettledCreate(owner types.UID, podName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry(owner).created[podName] = s.clock.Now().Add(UnsettledTimeout)
}

// UnsettledUpdate expects a pod that may have been changed since a resourceVersion.
func (s *Store) UnsettledUpdate(owner, pod types.UID, seen string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry(owner).updated[pod] = write{resourceVersion: seen, until: s.clock.Now().Add(UnsettledTimeout)}
}

// Looked says that the owner has looked past the cache for what it does not show, and expects what it found there.
func (s *Store) Looked(owner types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry(owner).doubted = false
}

// Met reports whether the cache shows everything that is expected of the owner. If not, remaining is the longest time that
// the owner still waits; zero if only a look past the cache, and then Looked, ends the wait. Met forgets what the cache
// shows and what has expired.
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
	return false, max(0, last.Sub(now))
}

// Reached reports whether the caches have reached the owner's writes. It is necessary for Met but not sufficient. It needs
// no list, and forgets nothing.
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

// Forget drops all expectations of an owner that no longer exists.
func (s *Store) Forget(owner types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owners, owner)
}

// Unmet returns the number of owners with an expectation.
func (s *Store) Unmet() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.owners)
}

// Oldest returns how long the longest-waiting owner has waited; zero if none waits.
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

// Expired returns how many expectations expired since the start because the cache never showed them.
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

// forgetExpired drops the expectations that have expired by now. It returns when the last of the rest expires.
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
	pods := e.pods()
	maps.DeleteFunc(e.deleted, func(_ types.UID, until time.Time) bool { return due(until) })
	maps.DeleteFunc(e.created, func(_ string, until time.Time) bool { return due(until) })
	maps.DeleteFunc(e.updated, func(_ types.UID, w write) bool { return due(w.until) })
	e.doubted = e.doubted || e.pods() < pods
	return last
}

// forgetShown drops the expectations that the cache meets.
func (e *entry) forgetShown(cache Cache) {
	maps.DeleteFunc(e.written, func(kind schema.GroupKind, w write) bool {
		return reached(cache.Synced[kind], w.resourceVersion)
	})
	if e.pods() == 0 {
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
	maps.DeleteFunc(e.updated, func(pod types.UID, _ write) bool {
		shown := !unchanged[pod]
		e.doubted = e.doubted || shown // another client may have changed it before this write did
		return shown
	})
	maps.DeleteFunc(e.deleted, func(pod types.UID, _ time.Time) bool { return !alive[pod] })
}

// pods returns how many changes of pods are expected.
func (e *entry) pods() int { return len(e.deleted) + len(e.created) + len(e.updated) }

func (e *entry) empty() bool { return len(e.written)+e.pods() == 0 && !e.doubted }

// reached reports whether a cache at one resourceVersion shows a write that returned another. It reports true if the two
// cannot be compared, because then there is nothing to wait for.
func reached(synced, written string) bool {
	order, err := resourceversion.CompareResourceVersion(synced, written)
	return err != nil || order >= 0
}
