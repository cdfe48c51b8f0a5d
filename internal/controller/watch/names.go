// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// names holds the names that sets wait for, and the names of deleted pods.
type names struct {
	mu sync.Mutex
	// waiting maps the names of other owners' pods to the sets that wait for these names.
	waiting map[types.NamespacedName]types.NamespacedName
	// gone holds the pods of sets with random names that were deleted since the last look, which may have shown none of them.
	gone map[types.UID][]string
}

// NoteGone notes that a pod of a set was deleted.
func (r *Router) NoteGone(set types.UID, pod string) {
	n := &r.names
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.gone == nil {
		n.gone = map[types.UID][]string{}
	}
	n.gone[set] = append(n.gone[set], pod)
}

// TakeGone returns the pods of a set that were deleted since the last call.
func (r *Router) TakeGone(set types.UID) []string {
	n := &r.names
	n.mu.Lock()
	defer n.mu.Unlock()
	gone := n.gone[set]
	delete(n.gone, set)
	return gone
}

// Await lets events of a pod wake a set, which waits for its name.
func (r *Router) Await(pod, set types.NamespacedName) {
	n := &r.names
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = map[types.NamespacedName]types.NamespacedName{}
	}
	n.waiting[pod] = set
}

// StopAwaiting records that no set waits for the name of a pod.
func (r *Router) StopAwaiting(pod types.NamespacedName) {
	n := &r.names
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.waiting, pod)
}

// waiter returns the set that waits for the name of a pod.
func (n *names) waiter(pod types.NamespacedName) (set types.NamespacedName, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	set, ok = n.waiting[pod]
	return set, ok
}

// forget drops all entries of a deleted set.
func (n *names) forget(set types.UID, name types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.gone, set)
	maps.DeleteFunc(n.waiting, func(_, waiter types.NamespacedName) bool { return waiter == name })
}
