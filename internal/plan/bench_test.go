// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
)

// situation is a state of a set of any size.
type situation struct {
	name string
	// config has N for the number of pods, and N/10 and N/2.
	config string
	// pods are the revision and mark of the pods, repeated as often as needed; empty for a set without pods.
	pods []string
}

func situations() []situation {
	settled := []string{"v1+"}
	halfway := []string{"v1+", "v2+", "v1+", "v2+", "v1+", "v2+", "v1+", "v2+", "v1.", "v2x"}
	return []situation{
		{name: "random/settled", config: "random R=N v1", pods: settled},
		{name: "random/mid-rollout", config: "random R=N mu=N/10 surge=N/10 v1>v2", pods: halfway},
		{name: "random/scale-up", config: "random R=N v1"},
		{name: "random/scale-down", config: "random R=N/2 v1", pods: settled},
		{name: "ordinal/settled", config: "ordinal R=N v1", pods: settled},
		{name: "ordinal/mid-rollout", config: "ordinal R=N mu=N/10 v1>v2", pods: halfway},
		{name: "ordinal/scale-up", config: "ordinal R=N v1"},
		{name: "ordered/mid-rollout", config: "ordered R=N mu=N/10 v1>v2", pods: halfway},
		{name: "ordered/scale-down", config: "ordered R=N/2 v1", pods: settled},
	}
}

// of returns the situation of a set of n pods.
func (s situation) of(n int) *snapshot.Set {
	words := make([]string, 0, n)
	for i := range n {
		if len(s.pods) > 0 {
			words = append(words, fmt.Sprintf("%d:%s", i, s.pods[i%len(s.pods)]))
		}
	}
	numbers := strings.NewReplacer("N/10", strconv.Itoa(n/10), "N/2", strconv.Itoa(n/2), "N", strconv.Itoa(n))
	snap := snapshottest.Parse(numbers.Replace(s.config), strings.Join(words, " "))
	snap.Preflights = map[string]snapshot.Preflight{snap.Current.Name: {}, snap.Update.Name: {}}
	return snap
}

func BenchmarkNext(b *testing.B) {
	for _, s := range situations() {
		for _, n := range []int{10, 100, 1_000, 10_000} {
			snap := s.of(n)
			b.Run(fmt.Sprintf("%s/%d", s.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					plan.Next(snap)
				}
			})
		}
	}
}

// TestAllocationsGrowWithPods fails if allocations grow faster than the number of pods. Time grows likewise, as the
// benchmark shows, but time is too noisy for a test.
func TestAllocationsGrowWithPods(t *testing.T) {
	const fewer, more = 1_000, 10_000
	for _, s := range situations() {
		t.Run(s.name, func(t *testing.T) {
			count := func(n int) float64 {
				snap := s.of(n)
				return testing.AllocsPerRun(1, func() { plan.Next(snap) })
			}
			x, y := count(fewer), count(more)
			exponent := math.Log(y/x) / math.Log(more/fewer)
			if exponent > 1.15 {
				t.Errorf("%.0f allocations for %d pods, %.0f for %d: they grow with the power of %.2f", x, fewer, y, more, exponent)
			}
		})
	}
}
