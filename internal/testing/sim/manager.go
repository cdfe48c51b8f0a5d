// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"math"
	"time"

	"k8s.io/utils/clock"

	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// Manager is a process that runs the real controller in a world.
type Manager struct {
	simulator.Process

	// Behind holds the resource versions with which the caches of some kinds begin after the next crash.
	Behind map[apiserver.Kind]int64
	// Skew is the time by which its clock is ahead of the world's.
	Skew time.Duration

	// born is the version of the store at its last start. It remembers no writes from before.
	born int64
	// waits is whom it looks at while the set waits.
	waits waiting
}

// skewed is the clock of a manager.
type skewed struct {
	clock.PassiveClock
	manager *Manager
}

// Now implements clock.PassiveClock.
func (s skewed) Now() time.Time { return s.PassiveClock.Now().Add(s.manager.Skew) }

// Since implements clock.PassiveClock.
func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// ahead returns by how much its clock is ahead, as it measures that: not at all for less than three seconds.
func (m *Manager) ahead() time.Duration {
	if m.Skew.Abs() < 3*time.Second {
		return 0
	}
	return m.Skew
}

// behind returns the newest resource version that the cache of a kind may begin with.
func (m *Manager) behind(kind apiserver.Kind) int64 {
	if version, ok := m.Behind[kind]; ok {
		return version
	}
	return math.MaxInt64
}

// Dispatch hands an event to the controller's own handlers.
func (m *Manager) Dispatch(ctx context.Context, e apiserver.Event) {
	m.waits.lost = m.waits.lost || e.Kind == apiserver.Pods && e.New == nil && invariants.OwnerOf(e.Old) != ""
	m.Process.Dispatch(ctx, e)
}

// work reconciles the request that was taken and puts it back. A request that hung holds its worker.
func (m *Manager) work(ctx context.Context, hung *bool) error {
	own := m.Working.Namespace == Namespace
	again, err := m.Work(ctx)
	m.waits.held = m.waits.held || own && *hung
	free := func() {
		m.waits.held = m.waits.held && !own
		again()
	}
	if *hung {
		m.Queue.AfterFunc(hangs, free)
	} else {
		free()
	}
	return err
}
