// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

var budget = flag.Duration("budget", 0, "for how long to play pairs of crash points, after all single ones")

// TestPairsOfCrashPoints plays pairs of crash points, drawn at random, until -budget has passed.
func TestPairsOfCrashPoints(t *testing.T) {
	t.Parallel()
	all := scenarios(t)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	seed := *start
	chance := rand.New(rand.NewPCG(seed, seed))
	references := map[string]course{}
	played, alarms := 0, 0
	inTime, cancel := context.WithTimeout(t.Context(), *budget)
	defer cancel()
	for ; alarms < 10 && (played == 0 || inTime.Err() == nil); played++ {
		name := names[chance.IntN(len(names))]
		s := all[name]
		reference, ok := references[name]
		if !ok {
			var err error
			if reference, err = follow(t.Context(), s, func(apiserver.Write) {}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			references[name] = reference
		}
		var pair []crashPoint
		for n := 1 + chance.IntN(len(reference.writes)); len(pair) < 2; n += 1 + chance.IntN(4) {
			points := crashPoints(n, s.lateKinds())
			pair = append(pair, points[chance.IntN(len(points))])
		}
		if err := s.survives(t.Context(), reference, &siteBook{}, pair...); err != nil {
			t.Errorf("%s: %v", name, err)
			alarms++
		}
	}
	t.Logf("%d pairs from -start=%d", played, seed)
}

// TestPairs plays the pairs of crash points that once raised an alarm.
func TestPairs(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][]crashPoint{
		// The pod that comes back under the name of one that a restart still sees going.
		"slow-start-of-pods": {{n: 14, fault: apiserver.CrashAfter, late: apiserver.Pods}, {n: 17, fault: apiserver.CrashAfter, late: apiserver.Pods}},
		// The same with one such restart.
		"smaller-requests": {{n: 36, fault: apiserver.CrashBefore}, {n: 39, fault: apiserver.CrashAfter, late: apiserver.Pods}},
		// A template that is replaced before it could be recorded.
		"change-in-rollout": {{n: 8, fault: apiserver.CrashAfter, late: apiserver.RollSets}, {n: 12, fault: apiserver.Failed500, late: apiserver.RollSets}},
		// A conflict is no refusal: pods that could not be created for it are counted on all the same.
		"guard-with-surge": {{n: 13, fault: apiserver.Refused409}, {n: 17, fault: apiserver.Failed500, late: apiserver.Pods}},
		// A template that an old spec wants again, which renumbers it.
		"ordinal-stuck-edits": {{n: 9, fault: apiserver.TimeoutWritten, late: apiserver.RollSets}, {n: 13, fault: apiserver.CrashAfter, late: apiserver.RollSets}},
	} {
		s := scenarios(t)[name]
		reference, err := follow(t.Context(), s, func(apiserver.Write) {})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := s.survives(t.Context(), reference, &siteBook{}, pair...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
