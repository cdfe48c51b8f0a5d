// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package footprint keeps a manager's memory small.
//
// The rule: Go's collector lets the heap grow to twice what is in use, and runs when it gets there. With little in use it
// runs all the time while there is work, so then the heap may grow to a fixed size instead. With thousands of pods in use
// the heap may grow by three tenths only: what comes and goes between what stays leaves gaps that cannot be given back, as
// many as there was room for. And a manager that has nothing to do does not get there at all, and would keep for hours what
// it needed for a minute: it collects once, and gives back what is free, as soon as it has done next to nothing for a while.
package footprint

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// period is how long a manager has to have done nothing.
	period = 10 * time.Second
	// little is what it may allocate in that time, in bytes, for its lease, probes and metrics.
	little = 8 << 20
	// room is what the heap may grow to while there is work, in bytes, and frugal by how many percent of what is in use it
	// may grow if that is more. Usual is Go's own number, which goes for a manager that has nothing to do.
	room, frugal, usual = 80 << 20, 30, 100
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
	var most atomic.Int64
	if normal == usual { // else somebody asked for it by GOGC
		afterEachCollection(ctx, func() { debug.SetGCPercent(growth(read("/gc/heap/live:bytes"), int(most.Load()))) })
	}
	var w watch
	wait.UntilWithContext(ctx, func(context.Context) {
		quiet := w.quiet(read("/gc/heap/allocs:bytes"))
		most.Store(usual)
		if !w.done {
			most.Store(math.MaxInt)
		}
		if quiet {
			debug.FreeOSMemory()
		}
	}, period)
	return nil
}

// afterEachCollection calls a function as soon as a collection has ended: its finalizer is that of what nobody refers to.
func afterEachCollection(ctx context.Context, do func()) {
	runtime.SetFinalizer(&struct{ do func() }{do}, func(*struct{ do func() }) {
		if ctx.Err() == nil {
			do()
			afterEachCollection(ctx, do)
		}
	})
}

// growth returns by how many percent a heap with so many bytes in use may grow before the next collection: to its room, but
// by no more than most percent, and by a frugal number of them always.
func growth(live uint64, most int) int {
	live = max(live, 1<<20)
	if live >= room {
		return frugal
	}
	return max(frugal, min(most, int((room-live)*100/live)))
}

// watch looks at what has been allocated, a period after the other.
type watch struct {
	before uint64
	done   bool
}

// quiet reports whether this period is the first with next to nothing allocated in it. It is given what has been allocated
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
