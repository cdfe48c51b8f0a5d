// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/status"
)

// memory is what the Reconciler remembers of each set. All of it may be lost at any time: then something is tried a
// little earlier than it would have been.
type memory struct {
	mu   sync.Mutex
	sets map[types.UID]*recollection
	// waiting says which set waits for a pod of another to go, because it needs the name.
	waiting map[types.NamespacedName]types.NamespacedName
	// gone are the pods of sets with random names that have gone since the last look, which may have shown none of them.
	gone map[types.UID][]string
}

// recollection is what is remembered of one set. Only the Reconcile of that set uses it.
type recollection struct {
	// reported is when the status was last written, hurried when all urgent writes that did not wait will have been paid for.
	reported, hurried time.Time
	// attempts are those that failed a while ago.
	attempts backoff.Table
	// replicas are what the pods said at the last look, in the order of identities, and at says where each pod is among them.
	replicas []snapshot.Replica
	at       map[types.UID]int
	// proofs is since when pods have been waiting for a proof of their update in place, by their UIDs.
	proofs map[types.UID]unproven
	// sawPods is true once the cache has shown a pod of the set.
	sawPods bool
	// sawSteps is true once the API server said how far the set has come in steps.
	sawSteps bool
	// issued is how many ids of its sequence the set has given out, and shown up to which of them the cache has shown all.
	issued, shown int
	// blocked are the identities whose names or claims were found taken.
	blocked map[string]snapshot.Block
	// preflights are the API server's answers to preflights by revision.
	preflights map[string]snapshot.Preflight
	// decoded is what revisions hold, by their UIDs.
	decoded map[types.UID]*decoded
	// recorded is the name of the revision that was written last.
	recorded string
	// unproven is the name of the revision of which the API server said that it was never completed.
	unproven string
	// collisions is how many names of revisions were found taken; status has it only after the next report.
	collisions *int32
	// rollout is the revision that pods are being moved to.
	rollout rollout
	// progress is what the last report knew of the progress of rollouts.
	progress status.Progress
	// blocking is what the set was last seen waiting for.
	blocking status.Blocking
	// troubles are the conditions that were last seen as they should not be.
	troubles []trouble
	// phase is what a step of the set was last seen waiting for; empty if none was at work.
	phase v1alpha1.RolloutPhase
}

// rollout is a revision on its way to all pods, and since when it is.
type rollout struct {
	revision string
	since    time.Time
}

// of returns what is remembered of a set.
func (m *memory) of(set types.UID) *recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sets == nil {
		m.sets = map[types.UID]*recollection{}
	}
	r, ok := m.sets[set]
	if !ok {
		r = &recollection{
			blocked:    map[string]snapshot.Block{},
			preflights: map[string]snapshot.Preflight{},
			decoded:    map[types.UID]*decoded{},
		}
		m.sets[set] = r
	}
	return r
}

// hold returns how long a write of the status has to wait, unless it is urgent.
func (m *recollection) hold(now time.Time) time.Duration {
	hold := m.reported.Add(reportEvery).Sub(now)
	if hold <= 0 || hold > reportEvery { // the second is a clock that was set back
		return 0
	}
	return hold
}

// hurry says whether a write that is urgent need not wait, and charges it.
func (m *recollection) hurry(now time.Time) bool {
	const credit = maxHurried * reportEvery
	paid := m.hurried
	if paid.Before(now) || paid.After(now.Add(credit)) { // the second is a clock that was set back
		paid = now
	}
	if paid = paid.Add(reportEvery); paid.After(now.Add(credit)) {
		return false
	}
	m.hurried = paid
	return true
}

// forget drops all that is remembered of a set that no longer exists.
func (m *memory) forget(set types.UID, name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, set)
	delete(m.gone, set)
	for pod, waiter := range m.waiting {
		if waiter == name {
			delete(m.waiting, pod)
		}
	}
}

// noteGone notes that a pod of a set has gone.
func (m *memory) noteGone(set types.UID, pod string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone == nil {
		m.gone = map[types.UID][]string{}
	}
	m.gone[set] = append(m.gone[set], pod)
}

// takeGone returns the pods of a set that have gone since it was last called.
func (m *memory) takeGone(set types.UID) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := m.gone[set]
	delete(m.gone, set)
	return gone
}

// wait notes that a set waits for the name of a pod.
func (m *memory) wait(pod, set types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting == nil {
		m.waiting = map[types.NamespacedName]types.NamespacedName{}
	}
	m.waiting[pod] = set
}

// waiter returns the set that waits for the name of a pod.
func (m *memory) waiter(pod types.NamespacedName) (set types.NamespacedName, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	set, ok = m.waiting[pod]
	return set, ok
}

// stopWaiting notes that a name is no longer waited for.
func (m *memory) stopWaiting(pod types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, pod)
}
