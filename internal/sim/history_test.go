// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// scriptLine draws one line of a script. Numbers are small and names few, so that what is drawn meets what was drawn before.
func scriptLine() *rapid.Generator[string] {
	number := func(low, high int) *rapid.Generator[string] {
		return rapid.Map(rapid.IntRange(low, high), func(n int) string { return strconv.Itoa(n) })
	}
	bound := rapid.OneOf(number(0, 4), rapid.SampledFrom([]string{"0%", "1%", "25%", "50%", "99%", "100%"}))
	pod := rapid.Map(rapid.IntRange(0, 11), letters)
	words := []struct {
		name string
		arg  *rapid.Generator[string]
	}{
		{"replicas", number(0, 6)},
		{"image", rapid.SampledFrom([]string{"app:v1", "app:v2", "app:v3", "app:broken", "app:slow"})},
		{"partition", bound},
		{"maxUnavailable", bound},
		{"maxSurge", bound},
		{"paused", rapid.SampledFrom([]string{"true", "false"})},
		{"minReady", number(0, 5)},
		{"history", number(0, 2)},
		{"deadline", number(8, 60)},
		{"onDeadline", rapid.SampledFrom([]string{"Hold", "Rollback"})},
		{"strategy", rapid.SampledFrom([]string{"RollingUpdate", "OnDelete", "Recreate"})},
		{"policy", rapid.SampledFrom([]string{"Recreate", "InPlaceIfPossible", "InPlaceOnly"})},
		{"annotate", rapid.SampledFrom([]string{"team=a", "team=b"})},
		{"memory", rapid.SampledFrom([]string{"64Mi", "128Mi"})},
		{"grace", number(0, 3)},
		{"close-gate", pod},
		{"open-gate", pod},
		{"tamper", pod},
		{"hook", rapid.SampledFrom([]string{"preNormal", "preDelete", "preDelete!", "inPlaceUpdate", "inPlaceUpdate!", "none"})},
		{"mark", pod},
		{"unmark", pod},
		{"cpu", rapid.SampledFrom([]string{"1", "64"})},
		{"quota", rapid.SampledFrom([]string{"2", "none"})},
		{"delete", pod},
		{"kill", pod},
		{"fail", pod},
		{"lose", pod},
		{"specify", pod},
		{"relabel", pod},
		{"label-back", pod},
		{"expensive", pod},
		{"podsToDelete", pod},
		{"run", rapid.Map(rapid.IntRange(0, 20), func(n int) string { return (time.Duration(n) * 500 * time.Millisecond).String() })},
	}
	alone := []string{"settle", "restart", "resync", "cordon", "uncordon", "deny", "allow", "managers 2"}
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			return rapid.SampledFrom(alone).Draw(t, "word")
		}
		w := rapid.SampledFrom(words).Draw(t, "word")
		return w.name + " " + w.arg.Draw(t, "argument")
	})
}

// relief takes away what could keep the set from its wanted state for ever.
const relief = "quota none\nuncordon\nallow\npolicy InPlaceIfPossible\nhook none\nsettle"

// TestHistories draws scripts and orders of events at random. A failure is shrunk; its script, saved in testdata with a
// sentence about what it shows, becomes a scenario.
func TestHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(scriptLine(), 1, 20).Draw(t, "script")
		text := strings.Join(lines, "\n") + "\n" + relief
		seed := rapid.Uint64Range(0, 1<<20).Draw(t, "seed")
		script, err := ParseScript(text)
		if err != nil {
			t.Fatal(err)
		}
		w, err := play(t.Context(), script, seed)
		if err == nil {
			err = w.CheckConverged(t.Context())
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, text, w.Film.last(60))
		}
	})
}
