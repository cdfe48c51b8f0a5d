// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"testing"

	"rollset.dev/rollset/api/v1beta1"
)

// TestPausedAnywhere pauses a rollout after each of its writes. While it is paused no pod is moved, which the checker
// sees to; once it goes on it ends as though nothing had been.
func TestPausedAnywhere(t *testing.T) {
	t.Parallel()
	const script = "replicas 4\nmaxUnavailable 1\nmaxSurge 1\nsettle\nimage app:v2"
	undisturbed := played(t, script)
	if err := undisturbed.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, last := played(t, script).Store.Version(), undisturbed.Store.Version()
	for version := first; version < last; version++ {
		w := played(t, script)
		if err := pauseAt(t.Context(), w, version); err != nil {
			t.Fatalf("paused at resource version %d: %v\n%s", version, err, w.Film)
		}
		if w.Ending() != undisturbed.Ending() {
			t.Fatalf("paused at resource version %d: ends with %s, want %s", version, w.Ending(), undisturbed.Ending())
		}
	}
	t.Logf("paused at %d points", last-first)
}

// played returns a new world in which a script was played, in the tidy order.
func played(t *testing.T, script string) *World {
	t.Helper()
	w := NewWorld(t.Context(), 0)
	if err := w.Play(t.Context(), mustParse(t, script)); err != nil {
		t.Fatalf("%v\n%s", err, w.Film.last(60))
	}
	return w
}

// pauseAt runs a world up to a resource version, pauses until all is quiet, and goes on.
func pauseAt(ctx context.Context, w *World, version int64) error {
	for w.Store.Version() < version {
		if more, err := w.turns.step(ctx, w.Now().Add(quiet)); err != nil || !more {
			return fmt.Errorf("the rollout ended early: %w", err)
		}
	}
	for _, paused := range []bool{true, false} {
		err := w.Edit(fmt.Sprintf("paused %v", paused), func(s *v1beta1.RollSetSpec) { s.UpdateStrategy.RollingUpdate.Paused = paused })
		if err != nil {
			return err
		}
		if err := w.Settle(ctx); err != nil {
			return err
		}
	}
	return w.CheckConverged(ctx)
}
