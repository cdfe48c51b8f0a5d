// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/controller/revisions"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan/observe"
	"rollset.dev/rollset/internal/status"
)

// memory keeps the findings of reconciles for the next ones. All of it may be lost at any time: then the manager tries something a little
// earlier.
type memory struct {
	mu   sync.Mutex
	sets map[types.UID]*setMemory
}

// setMemory is the memory of one set. Only the Reconcile of that set uses it.
type setMemory struct {
	// seen holds the pods of the last look.
	seen observe.Memory
	// attempts holds the attempts that failed a while ago.
	attempts backoff.Table
	// taken are the identities whose names or claims were found taken.
	taken map[string]snapshot.Block
	// preflights are the API server's answers to preflights by revision.
	preflights map[string]snapshot.Preflight
	// sawPods is true once the cache has shown a pod of the set.
	sawPods bool
	// sawStatus is true once the API server said whether the cache shows the newest status.
	sawStatus bool
	// judged is the generation for which the API server was asked whether the cache shows the newest pods.
	judged    int64
	revisions revisions.Memory
	reports   reportMemory
}

// reportMemory is the memory of the reports on one set.
type reportMemory struct {
	// written is when the status was last written. urgentPaid is the time until which urgent writes have used up their limit.
	written, urgentPaid time.Time
	// altered is the status that the API server accepted and altered when it was last written; nil if it did not.
	altered *v1beta1.RollSetStatus
	// progress is the progress of the rollout as of the last report.
	progress status.Progress
	// metrics holds the metrics of the set that exist.
	metrics metrics.Shown
}

// of returns what is remembered of a set.
func (m *memory) of(set types.UID) *setMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sets == nil {
		m.sets = map[types.UID]*setMemory{}
	}
	known, ok := m.sets[set]
	if !ok {
		known = &setMemory{taken: map[string]snapshot.Block{}, preflights: map[string]snapshot.Preflight{}}
		m.sets[set] = known
	}
	return known
}

// forget drops all that is remembered of a set that no longer exists.
func (m *memory) forget(set types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, set)
}

// hold returns how long a write of the status has to wait, unless it is urgent.
func (m *reportMemory) hold(now time.Time) time.Duration {
	hold := m.written.Add(reportEvery).Sub(now)
	if hold <= 0 || hold > reportEvery { // the second is a clock that was set back
		return 0
	}
	return hold
}

// allowsUrgent reports whether an urgent write need not wait, and charges it.
func (m *reportMemory) allowsUrgent(now time.Time) bool {
	const credit = maxUrgent * reportEvery
	paid := m.urgentPaid
	if paid.Before(now) || paid.After(now.Add(credit)) { // the second is a clock that was set back
		paid = now
	}
	if paid = paid.Add(reportEvery); paid.After(now.Add(credit)) {
		return false
	}
	m.urgentPaid = paid
	return true
}
