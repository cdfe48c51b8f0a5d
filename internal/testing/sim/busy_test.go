// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// TestBudgetIsKeptFilled rolls a set with a tenth of it unavailable. Whenever the clock moves on, no budget is left
// while old pods wait. So the rollout takes ten times as long as one pod, without pauses between waves and without a
// tail of single pods. Events of a large set may wait for their turn, but no longer than a few reconciles take. Package
// plan rolls a thousand pods that take different times, with the planners alone.
func TestBudgetIsKeptFilled(t *testing.T) {
	t.Parallel()
	for identity, onePod := range map[string]time.Duration{
		"Random":  time.Second,     // the new pod starts while the old one ends
		"Ordinal": 2 * time.Second, // its name has to be free first
	} {
		for replicas, pause := range map[int]time.Duration{20: 0, 200: 300 * time.Millisecond} {
			t.Run(fmt.Sprint(identity, " ", replicas), func(t *testing.T) {
				t.Parallel()
				w := played(t, fmt.Sprintf("identity %s\nmanagement Parallel\nreplicas %d\nmaxUnavailable 10%%\nsettle", identity, replicas))
				took, err := rollBusily(t.Context(), w, replicas, pause)
				if err != nil {
					t.Fatal(err)
				}
				if want := 10 * (onePod + pause); took.Round(time.Millisecond) > want {
					t.Errorf("the rollout took %s, want at most %s", took, want)
				}
			})
		}
	}
}

// rollBusily rolls a set to a new template and returns how long that takes. It fails if for longer
// than a pause budget, a tenth of the set, is left and an old pod waits.
func rollBusily(ctx context.Context, w *World, replicas int, pause time.Duration) (time.Duration, error) {
	start := w.Now()
	spent := start
	err := w.Edit("image", func(s *v1beta1.RollSetSpec) { s.Template.Spec.Containers[0].Image = "app:v2" })
	if err != nil {
		return 0, err
	}
	for {
		before := w.Now()
		more, err := w.turns.step(ctx, start.Add(time.Minute))
		if err != nil {
			return 0, err
		}
		if more && w.Now().Equal(before) || before.Equal(start) { // at first the API server is asked
			continue
		}
		old, available := 0, 0
		for _, pod := range w.Pods() {
			if invariants.IsActive(pod) && w.Version(pod) == "v1" {
				old++
			}
			if invariants.IsActive(pod) && invariants.IsAvailable(pod, 0, before) {
				available++
			}
		}
		switch unavailable := replicas - available; {
		case old == 0 && unavailable == 0:
			return before.Sub(start), nil
		case !more:
			return 0, fmt.Errorf("the rollout ended with %d old and %d unavailable pods", old, unavailable)
		case old == 0 || unavailable >= replicas/10:
			spent = before
		case before.Sub(spent) > pause:
			return 0, fmt.Errorf("%s into the rollout %d old pods wait, and only %d are unavailable", before.Sub(start), old, unavailable)
		}
	}
}
