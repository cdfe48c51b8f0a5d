// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"
)

// TestBudget lets something happen to pods of a set all the time, and looks whenever the set is let in.
func TestAccount(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pods, writes   int
		every, during  time.Duration
		wantAtOnce     int           // looks before the first wait
		wantLooks      int           // looks at most
		wantWaitAtMost time.Duration // of one event
	}{
		"a few events of a small set":       {pods: 3, every: 50 * time.Millisecond, during: 10 * time.Second, wantAtOnce: 200, wantLooks: 200},
		"a pod changed 1000 times a second": {pods: 3, every: time.Millisecond, during: 10 * time.Second, wantAtOnce: 50, wantLooks: 950, wantWaitAtMost: 12 * time.Millisecond},
		"1000 pods that start in 3 s":       {pods: 1_000, every: time.Millisecond, during: 3 * time.Second, wantAtOnce: 2, wantLooks: 9, wantWaitAtMost: 410 * time.Millisecond},
		"1000 pods that move in 6 s":        {pods: 1_000, writes: 5, every: time.Millisecond, during: 6 * time.Second, wantAtOnce: 5, wantLooks: 60, wantWaitAtMost: 110 * time.Millisecond},
		"1000 pods that move in a minute":   {pods: 1_000, writes: 4, every: time.Millisecond, during: time.Minute, wantAtOnce: 2, wantLooks: 148, wantWaitAtMost: 410 * time.Millisecond},
		"3000 pods that start in 10 s":      {pods: 3_000, every: time.Millisecond, during: 10 * time.Second, wantAtOnce: 1, wantLooks: 11, wantWaitAtMost: time.Second},
		"no set waits longer than a second": {pods: 1 << 30, every: time.Millisecond, during: 10 * time.Second, wantAtOnce: 1, wantLooks: 11, wantWaitAtMost: time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a account
			start := time.Unix(1_000, 0)
			looks, atOnce, longest := 0, -1, time.Duration(0)
			for now := start; now.Before(start.Add(tt.during)); now = now.Add(tt.every) {
				wait := a.wait(now)
				longest = max(longest, wait)
				if wait > 0 && atOnce < 0 {
					atOnce = looks
				}
				if wait == 0 {
					a = a.charge(now, Look{Pods: tt.pods, Writes: tt.writes}.cost())
					looks++
				}
			}
			if atOnce < 0 {
				atOnce = looks
			}
			if atOnce != tt.wantAtOnce || looks > tt.wantLooks || longest > tt.wantWaitAtMost {
				t.Errorf("%d looks at once, %d in all, the longest wait is %s; want %d, at most %d and %s",
					atOnce, looks, longest, tt.wantAtOnce, tt.wantLooks, tt.wantWaitAtMost)
			}
		})
	}
}

func TestAccountsArePaidOff(t *testing.T) {
	t.Parallel()
	var a account
	now := time.Unix(1_000, 0)
	for range 1_000 { // a user edits the set, which does not wait
		a = a.charge(now, Look{Pods: 10_000}.cost())
	}
	if wait := a.wait(now); wait > maxCost {
		t.Errorf("an event waits %s, want %s at most", wait, maxCost)
	}
	if wait := a.wait(now.Add(-time.Hour)); wait > maxCost {
		t.Errorf("an event waits %s after the clock was set back, want %s at most", wait, maxCost)
	}
	if wait := a.wait(now.Add(maxCost)); wait > 0 {
		t.Errorf("an event waits %s after a second, want none", wait)
	}
}
