// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package footprint keeps a manager's memory small.
//
// The rule: Go's collector lets the heap grow to twice what is in use before it runs. With little in use it runs all the
// time during work, so the heap may grow by a fixed size instead. With tens of thousands of pods in use the heap may grow by
// three tenths only, because short-lived objects between long-lived ones leave gaps that cannot be released. An idle manager
// does not reach the next collection at all, and would keep for hours what it needed for a minute. So it collects once and
// releases free memory as soon as it was idle for a while.
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
	// period is how long a manager must have been idle.
	period = 10 * time.Second
	// little is how much an idle manager may allocate in that time, in bytes, because of its lease, probes and metrics.
	little = 8 << 20
	// room is by how much the heap may grow during work, in bytes. frugal is the percentage of what is in use by which it may
	// grow if that is more. usual is Go's own percentage, which is the most for an idle manager.
	room, frugal, usual = 64 << 20, 30, 100
)

// Runnable keeps the memory of a manager small, whether it leads or not.
func Runnable() manager.Runnable { return runnable{} }

type runnable struct{}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (runnable) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (runnable) Start(ctx context.Context) error {
	normal := debug.SetGCPercent(frugal) // setting it is the only way to read it
	debug.SetGCPercent(normal)
	var most atomic.Int64
	if normal == usual { // otherwise a user set GOGC
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

// afterEachCollection calls a function after every collection. It is the finalizer of an object without references.
func afterEachCollection(ctx context.Context, do func()) {
	runtime.SetFinalizer(&struct{ do func() }{do}, func(*struct{ do func() }) {
		if ctx.Err() == nil {
			do()
			afterEachCollection(ctx, do)
		}
	})
}

// growth returns the percentage by which a heap with so many bytes in use may grow before the next collection: by its room, but
// by no more than most percent, and always by at least frugal percent.
func growth(live uint64, most int) int {
	return max(frugal, min(most, int(room*100/max(live, 1<<20))))
}

// watch checks what was allocated in each period.
type watch struct {
	before uint64
	done   bool
}

// quiet reports whether this period is the first with almost no allocations. It is given what was allocated since the
// process began, in bytes.
func (w *watch) quiet(allocated uint64) bool {
	busy := allocated-w.before > little
	first := !busy && !w.done
	w.before, w.done = allocated, !busy
	return first
}

// read returns a metric of the runtime.
func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
