// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package footprint keeps a manager's memory small.
//
// The rule: by default, Go's collector runs when the heap has doubled since the last collection. With a small live heap it would run
// all the time during work, so the heap may grow by a fixed size instead. With tens of thousands of pods it may grow by three tenths
// only, because short-lived objects between long-lived ones leave gaps that cannot be released. An idle manager does not reach the next
// collection, and would keep its free memory for hours. So it collects once after ten idle seconds, and releases free memory.
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
	// idleBytes is how many bytes an idle manager may allocate in that time, for its lease, probes and metrics.
	idleBytes = 8 << 20
	// growBytes is by how many bytes the heap may grow during work, and minPercent the percentage of the live heap by which it may
	// always grow. goPercent is Go's own percentage, and the maximum for an idle manager.
	growBytes, minPercent, goPercent = 64 << 20, 30, 100
)

// Runnable keeps the memory of a manager small, whether it leads or not.
func Runnable() manager.Runnable { return runnable{} }

type runnable struct{}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (runnable) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (runnable) Start(ctx context.Context) error {
	normal := debug.SetGCPercent(minPercent) // setting it is the only way to read it
	debug.SetGCPercent(normal)
	var most atomic.Int64
	if normal == goPercent { // otherwise a user set GOGC
		afterEachCollection(ctx, func() { debug.SetGCPercent(growth(read("/gc/heap/live:bytes"), int(most.Load()))) })
	}
	var w watch
	wait.UntilWithContext(ctx, func(context.Context) {
		quiet := w.quiet(read("/gc/heap/allocs:bytes"))
		most.Store(goPercent)
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

// growth returns the percentage by which a heap with so many bytes in use may grow before the next collection: by growBytes, but
// by no more than most percent, and always by at least minPercent percent.
func growth(live uint64, most int) int {
	return max(minPercent, min(most, int(growBytes*100/max(live, 1<<20))))
}

// watch compares the allocations of consecutive periods.
type watch struct {
	before uint64
	done   bool
}

// quiet reports whether this period is the first with almost no allocations after a busy one. allocated is the number of bytes that the
// process has allocated since it started.
func (w *watch) quiet(allocated uint64) bool {
	busy := allocated-w.before > idleBytes
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
