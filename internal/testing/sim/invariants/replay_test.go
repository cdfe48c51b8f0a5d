// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// TestReplayedRulesCanFail replays the writes that break each rule, as a real API server would record them.
func TestReplayedRulesCanFail(t *testing.T) {
	t.Parallel()
	all := breaches()
	delete(all, "budget") // budgets are not recorded
	for name, b := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCourt(t, b.edit)
			b.do(c)
			record := longAgo(c.store.Log())
			if _, err := Replay(record, apiserver.KeyOf(c.set), manager, Lag); err == nil || !strings.HasPrefix(err.Error(), name+" broken") {
				t.Errorf("replayed: %v", err)
			}
		})
	}
}

// longAgo returns a record in which all but the last write happened 2.5 seconds before, so that the caches
// showed it.
func longAgo(log []apiserver.Entry) []apiserver.Entry {
	record := slices.Clone(log)
	for i := range record[:len(record)-1] {
		record[i].At = record[i].At.Add(-2500 * time.Millisecond)
	}
	return record
}
