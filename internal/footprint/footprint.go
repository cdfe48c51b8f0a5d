// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package footprint keeps a manager's memory small.
//
// The rule: Go's collector lets the heap grow to twice what is in use, and runs when it gets there; a manager that has
// nothing to do does not get there, and would keep for hours what it needed for a minute. So it collects once, and gives
// back what is free, as soon as it has done next to nothing for a while; never while it has something to do. And where
// thousands of pods are in use the heap may grow by two fifths only: what comes and goes between what stays leaves gaps that
// cannot be given back, as many as there was room for.
package footprint

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// period is how long a manager has to have done nothing.
	period = 10 * time.Second
	// little is what it may allocate in that time, in bytes, for its lease, probes and metrics.
	little = 8 << 20
	// large is how many bytes in use make a heap a large one, and frugal by how many percent that may grow, other than
	// the usual.
	large, frugal, usual = 48 << 20, 40, 100
)

// Runnable does it in a manager, whether it leads or not.
func Runnable() manager.Runnable { return runnable{} }

type runnable struct{}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (runnable) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (runnable) Start(ctx context.Context) error {
	normal := debug.SetGCPercent(frugal) // the only way to read it is to set it
	debug.SetGCPercent(normal)
	var w watch
	wait.UntilWithContext(ctx, func(context.Context) {
		debug.SetGCPercent(growth(read("/gc/heap/live:bytes"), normal))
		if w.quiet(read("/gc/heap/allocs:bytes")) {
			debug.FreeOSMemory()
		}
	}, period)
	return nil
}

// growth is by how many percent a heap with so many bytes in use may grow. Another number than the usual one is what
// somebody asked for by GOGC, and stays.
func growth(live uint64, normal int) int {
	if live > large && normal == usual {
		return frugal
	}
	return normal
}

// watch looks at what has been allocated, a period after the other.
type watch struct {
	before uint64
	done   bool
}

// quiet says whether this period is the first with next to nothing allocated in it. It is given what has been allocated
// since the process began, in bytes.
func (w *watch) quiet(allocated uint64) bool {
	busy := allocated-w.before > little
	first := !busy && !w.done
	w.before, w.done = allocated, !busy
	return first
}

// read returns a number of the runtime's.
func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
