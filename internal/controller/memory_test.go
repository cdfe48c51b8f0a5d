// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"
)

func TestForgottenSetsAreForgotten(t *testing.T) {
	t.Parallel()
	var m memory
	m.of("uid").sawPods = true
	m.forget("uid")
	if m.of("uid").sawPods {
		t.Error("something is remembered")
	}
}

// TestStatusWritesAreRationed has something urgent to report all the time.
func TestStatusWritesAreRationed(t *testing.T) {
	t.Parallel()
	const every, during = 20 * time.Millisecond, time.Minute
	var m reportMemory
	start := time.Unix(1_000, 0)
	writes, atOnce := 0, 0
	for now := start; now.Before(start.Add(during)); now = now.Add(every) {
		if m.hold(now) > 0 && !m.allowsUrgent(now) {
			continue
		}
		if now.Sub(start) == time.Duration(writes)*every {
			atOnce++
		}
		m.written = now
		writes++
	}
	if atOnce != 1+maxUrgent {
		t.Errorf("%d writes before the first that waits, want %d", atOnce, 1+maxUrgent)
	}
	if most := maxUrgent + 2*int(during/reportEvery); writes > most {
		t.Errorf("%d writes in %s, want %d at most", writes, during, most)
	}
	if before := start.Add(-time.Hour); m.hold(before) > 0 || !m.allowsUrgent(before) {
		t.Error("a write waits after the clock was set back")
	}
}
