// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim"
)

// states returns how many random states are forecast: STATES=1000 go test ./internal/forecast.
func states() int {
	if n, err := strconv.Atoi(os.Getenv("STATES")); err == nil {
		return n
	}
	if testing.Short() {
		return 20
	}
	return 100
}

// TestPlanFromAnyState plays golden rollouts in random orders, with failing writes, and stops them somewhere. From there on
// nothing is late, and the manager has just started: what it writes then is the plan.
func TestPlanFromAnyState(t *testing.T) {
	t.Parallel()
	all := scripts(t)
	for name, script := range all {
		if slices.ContainsFunc(script, func(s sim.Step) bool { return strings.HasPrefix(s.Line, "managers") }) {
			delete(all, name) // a plan covers one manager
		}
	}
	names := slices.Sorted(maps.Keys(all))
	var busy atomic.Int32
	t.Cleanup(func() {
		t.Logf("in %d of %d states something was left to do", busy.Load(), states())
		if int(busy.Load()) < states()/3 && os.Getenv("STATE") == "" {
			t.Errorf("in %d of %d states something was left to do: that shows little", busy.Load(), states())
		}
	})
	for n := range states() {
		seed := uint64(n + 1)
		if only := os.Getenv("STATE"); only != "" && only != strconv.FormatUint(seed, 10) {
			continue
		}
		chance := rand.New(rand.NewPCG(seed, seed))
		name := names[chance.IntN(len(names))]
		t.Run(strconv.FormatUint(seed, 10)+"-"+name, func(t *testing.T) {
			t.Parallel()
			want, got := fromMiddle(t, all[name], seed, chance)
			if len(want) > 0 {
				busy.Add(1)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("STATE=%d (-film +plan):\n%s", seed, diff)
			}
		})
	}
}

// fromMiddle returns what is written and what is forecast, from somewhere in a rollout on.
func fromMiddle(t *testing.T, script sim.Script, seed uint64, chance *rand.Rand) (want, got []string) {
	t.Helper()
	ctx := t.Context()
	w := sim.NewWorld(ctx, seed)
	w.Managers[0].Client.Faults = faults(chance)
	if err := w.Play(ctx, script[:beforePause(script, chance)].CutPauses(w)); err != nil {
		t.Fatalf("%v\n%s", err, w.Film)
	}
	if err := w.Run(ctx, time.Duration(chance.IntN(3000))*time.Millisecond); err != nil {
		t.Fatalf("%v\n%s", err, w.Film)
	}
	w.EndFaults(ctx)
	from := w.Store.Version()
	got, err := plan(ctx, w, from, w.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := settle(ctx, w); err != nil {
		t.Fatalf("%v\n%s", err, w.Film)
	}
	return film(w.Store, from), got
}

// beforePause returns a place in a script at which the set exists and time passes next, so that something may be under way.
func beforePause(script sim.Script, chance *rand.Rand) int {
	var places []int
	exists := false
	for i, step := range script {
		if pause := strings.HasPrefix(step.Line, "settle") || strings.HasPrefix(step.Line, "run"); pause {
			if exists {
				places = append(places, i)
			}
			exists = true
		}
	}
	if len(places) == 0 {
		return len(script)
	}
	return places[chance.IntN(len(places))]
}

// faults makes one write in twenty fail.
func faults(chance *rand.Rand) apiserver.FaultPlan {
	kinds := []apiserver.Fault{
		apiserver.Refused409, apiserver.Refused429, apiserver.Refused403, apiserver.Failed500, apiserver.TimeoutLost, apiserver.TimeoutWritten, apiserver.TimeoutLate, apiserver.CrashBefore, apiserver.CrashAfter,
	}
	return func(apiserver.Write) apiserver.Fault {
		if chance.IntN(20) > 0 {
			return apiserver.NoFault
		}
		return kinds[chance.IntN(len(kinds))]
	}
}
