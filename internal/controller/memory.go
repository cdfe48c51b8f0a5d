// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan/observe"
	"rollset.dev/rollset/internal/status"
)

// memory is what the Reconciler remembers of each set. All of it may be lost at any time: then something is tried a
// little earlier than it would have been.
type memory struct {
	mu   sync.Mutex
	sets map[types.UID]*recollection
}

// recollection is what is remembered of one set. Only the Reconcile of that set uses it.
type recollection struct {
	// reported is when the status was last written, hurried when all urgent writes that did not wait will have been paid for.
	reported, hurried time.Time
	// attempts are those that failed a while ago.
	attempts backoff.Table
	// seen is what the last look saw.
	seen observe.Memory
	// sawPods is true once the cache has shown a pod of the set.
	sawPods bool
	// sawSteps is true once the API server said how far the set has come in steps.
	sawSteps bool
	// blocked are the identities whose names or claims were found taken.
	blocked map[string]snapshot.Block
	// preflights are the API server's answers to preflights by revision.
	preflights map[string]snapshot.Preflight
	// pruned are the versions of revisions that were deleted, by their UIDs. The cache may still show them.
	pruned map[types.UID]string
	// recorded is the name of the revision that was written last.
	recorded string
	// unproven is the name of the revision of which the API server said that it was never completed.
	unproven string
	// collisions is how many names of revisions were found taken; status has it only after the next report.
	collisions *int32
	// progress is what the last report knew of the progress of rollouts.
	progress status.Progress
	// shownMetrics is which metrics there are of the set.
	shownMetrics metrics.Shown
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
			pruned:     map[types.UID]string{},
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
func (m *memory) forget(set types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, set)
}
