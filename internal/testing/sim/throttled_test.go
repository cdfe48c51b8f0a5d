// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// TestThrottledWrites has the API server answer writes of pods with 429 Too Many Requests for a minute. They are
// retried with growing delays, at 0, 1, 3, 7, 15 and 31 s, and succeed in the end. The effect on other sets is tested
// in test/e2e.
func TestThrottledWrites(t *testing.T) {
	t.Parallel()
	const rounds = 6
	tests := map[string]struct {
		before, edit string
		preflights   bool // are refused, and not what follows
		most         int  // tries in a minute
	}{
		"create":          {before: "replicas 0\nsettle", edit: "replicas 10", most: rounds}, // one finds out for all
		"scale in":        {before: "replicas 10\nsettle", edit: "replicas 0", most: 10 * rounds},
		"ask first":       {before: "replicas 10\nsettle", edit: "image app:v2", preflights: true, most: rounds},
		"recreate":        {before: "replicas 10\nmaxUnavailable 3\nsettle", edit: "image app:v2", most: 3 * rounds},
		"update in place": {before: "policy InPlaceOnly\nreplicas 10\nmaxUnavailable 3\nsettle", edit: "image app:v2", most: 3 * rounds},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := played(t, tt.before)
			client, tried := w.Managers[0].Client, 0
			client.Faults = func(w apiserver.Write) apiserver.Fault {
				if w.Key.Kind != apiserver.Pods || w.DryRun != tt.preflights {
					return apiserver.NoFault
				}
				tried++
				return apiserver.Refused429
			}
			if err := w.Play(t.Context(), mustParse(t, tt.edit)); err != nil {
				t.Fatal(err)
			}
			if err := w.Run(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			if tried < 2 || tried > tt.most {
				t.Errorf("there are %d tries in a minute, want some, and %d at most", tried, tt.most)
			}
			client.Faults = nil
			if err := w.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.CheckConverged(t.Context()); err != nil {
				t.Errorf("%v\n%s", err, w.Film)
			}
		})
	}
}
