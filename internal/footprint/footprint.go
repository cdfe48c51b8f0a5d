// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package footprint gives memory back that a manager used while there was much to do.
//
// The rule: Go's collector lets the heap grow to twice what is in use, and runs when it gets there; a manager that has
// nothing to do does not get there, and would keep for hours what it needed for a minute. So it collects once, and gives
// back what is free, as soon as it has done next to nothing for a while; never while it has something to do.
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
)

// Runnable does it in a manager, whether it leads or not.
func Runnable() manager.Runnable { return runnable{} }

type runnable struct{}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (runnable) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (runnable) Start(ctx context.Context) error {
	var w watch
	wait.UntilWithContext(ctx, func(context.Context) {
		if w.quiet(allocated()) {
			debug.FreeOSMemory()
		}
	}, period)
	return nil
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

// allocated is what has been allocated since the process began, in bytes.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
