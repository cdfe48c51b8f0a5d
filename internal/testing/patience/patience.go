// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package patience bounds the waits of tests. A bound is no expectation of how long anything takes: only a wait that would
// never end may fail. So it grows with what else the machine has to do.
package patience

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// Long bounds the wait for what a cluster does in seconds if the machine does nothing else.
func Long() time.Duration { return For(2 * time.Minute) }

// For returns the bound of a wait that begins now, if idle is the bound on a machine that does nothing else.
func For(idle time.Duration) time.Duration {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil { // only Linux has this file
		return 2 * idle
	}
	return times(idle, string(text), runtime.GOMAXPROCS(0))
}

// times multiplies a bound by the number of threads that compute, or want to, for each core: on average over the last minute,
// or now if that is more.
func times(idle time.Duration, loadavg string, cores int) time.Duration {
	var minute, five, fifteen, now float64
	if _, err := fmt.Sscanf(loadavg, "%f %f %f %f/", &minute, &five, &fifteen, &now); err != nil {
		return 2 * idle
	}
	return time.Duration(float64(idle) * max(1, max(minute, now)/float64(cores)))
}
