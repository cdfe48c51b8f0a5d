// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package patience

import (
	"testing"
	"time"
)

func TestTimes(t *testing.T) {
	for name, test := range map[string]struct {
		loadavg string
		cores   int
		want    time.Duration
	}{
		"an idle machine":                    {"0.10 2.00 4.00 1/170 4242\n", 2, time.Minute},
		"as many threads as cores":           {"2.00 0.00 0.00 2/170 4242\n", 2, time.Minute},
		"five times as many":                 {"10.00 0.00 0.00 1/170 4242\n", 2, 5 * time.Minute},
		"a load that has just begun":         {"0.50 0.00 0.00 6/170 4242\n", 2, 3 * time.Minute},
		"one of several cores may be used":   {"3.00 0.00 0.00 1/170 4242\n", 1, 3 * time.Minute},
		"what has another form says nothing": {"busy", 2, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := times(time.Minute, test.loadavg, test.cores); got != test.want {
				t.Errorf("times(1m, %q, %d) = %v, want %v", test.loadavg, test.cores, got, test.want)
			}
		})
	}
}

func TestForIsNoLess(t *testing.T) {
	if got := For(time.Second); got < time.Second {
		t.Errorf("For(1s) = %v", got)
	}
}
