// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/stored"
)

var (
	update = flag.Bool("update", false, "rewrite the logs in testdata")
	seeds  = flag.Int("seeds", seedsFromEnv(), "how many orders of events every scenario is replayed in")
	start  = flag.Uint64("start", 1, "the first of these orders")
	seed   = flag.Uint64("seed", 0, "replay only this seed")
)

// seedsFromEnv lets make set the number of seeds: SEEDS=1000 make test.
func seedsFromEnv() int {
	if n, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		return n
	}
	return 50
}

// scenario is one file in testdata: a claim in prose, the script, and the film strip of the tidy run.
type scenario struct {
	path    string
	archive *txtar.Archive
	script  Script
	// tidy returns the tidy run, which several tests look at.
	tidy func() *tidyRun
}

// loaded returns all scenarios by name.
var loaded = sync.OnceValues(func() (map[string]scenario, error) {
	paths, err := filepath.Glob("testdata/*.txtar")
	all := make(map[string]scenario)
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, err
		}
		s := scenario{path: path, archive: archive}
		if s.script, err = ParseScript(string(s.section("script"))); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		s.tidy = tidily(s.script)
		all[strings.TrimSuffix(filepath.Base(path), ".txtar")] = s
	}
	return all, err
})

func scenarios(t *testing.T) map[string]scenario {
	t.Helper()
	all, err := loaded()
	if err != nil || len(all) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	return maps.Clone(all)
}

func (s scenario) section(name string) []byte {
	for _, f := range s.archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// play runs a script in a new world. The seed chooses the order of events; some seeds also cut the pauses short, and
// some let writes meet faults.
func play(ctx context.Context, script Script, seed uint64) (*World, error) {
	w := NewWorld(ctx, seed)
	if seed != 0 {
		if seed%4 >= 2 {
			script = script.CutPauses(w)
		}
		if seed%4 >= 1 && seed%4 <= 2 {
			w.Managers[0].Client.Faults = randomFaults(w.Chance)
		}
	}
	if err := w.Play(ctx, script); err != nil {
		return w, err
	}
	return w, nil
}

// cutsPauses reports whether a seed cuts pauses short, so that the end may differ from the tidy run's.
func cutsPauses(seed uint64) bool { return seed%4 >= 2 }

// maxFaults bounds the faults of a run. Each crash leads to more writes, which otherwise lead to the next one for hours.
const maxFaults = 50

// randomFaults lets one write in twenty meet a fault.
func randomFaults(chance *rand.Rand) apiserver.FaultPlan {
	faults := []apiserver.Fault{apiserver.Refused409, apiserver.Refused429, apiserver.Refused403, apiserver.Failed500, apiserver.TimeoutLost, apiserver.TimeoutWritten, apiserver.TimeoutLate, apiserver.CrashBefore, apiserver.CrashAfter}
	n := 0
	return func(apiserver.Write) apiserver.Fault {
		if n == maxFaults || chance.IntN(20) > 0 {
			return apiserver.NoFault
		}
		n++
		return faults[chance.IntN(len(faults))]
	}
}

// tidyRun is what a script gives in the tidy order.
type tidyRun struct {
	// log is the film strip with the tally, and ending the state of all pods.
	log, ending string
	// told holds what the condition Progressing said.
	told map[string]bool
	// managers is how many there are in the end, and writes how many writes the first one tried.
	managers, writes int
	// err is what broke the run, and unrest what broke after its end.
	err, unrest error
}

// tidily returns a function that plays a script in the tidy order, at its first call.
func tidily(script Script) func() *tidyRun {
	return sync.OnceValue(func() *tidyRun {
		ctx, writes, told := context.Background(), 0, map[string]bool{}
		w := NewWorld(ctx, 0)
		w.Managers[0].Client.Faults = func(apiserver.Write) apiserver.Fault { writes++; return apiserver.NoFault }
		w.Store.OnWrite(func(e *apiserver.Entry) {
			if e.Key.Kind == apiserver.RollSets {
				told[w.told()] = true
			}
		})
		err := w.Play(ctx, script)
		r := &tidyRun{log: w.Film.String() + w.checker.Tally(), ending: w.Ending(), told: maps.Clone(told), managers: len(w.Managers), writes: writes, err: err}
		if err == nil {
			r.unrest = w.CheckConverged(ctx)
		}
		for set := range apiserver.Each[*v1beta1.RollSet](w.Store) {
			r.unrest = errors.Join(r.unrest, stored.Print(set))
		}
		return r
	})
}

// TestGolden compares the film strip of every scenario, in the tidy order, with the recorded one.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.tidy()
			if got.err != nil {
				t.Fatalf("%v\n%s", got.err, got.log)
			}
			if *update {
				s.write(t, got.log)
			} else if diff := cmp.Diff(string(s.section("log")), got.log); diff != "" {
				t.Errorf("log (-want +got), go test ./internal/testing/sim -update rewrites it:\n%s", diff)
			}
			if got.unrest != nil {
				t.Errorf("%v\n%s", got.unrest, got.log)
			}
		})
	}
}

func (s scenario) write(t *testing.T, log string) {
	t.Helper()
	s.archive.Files = []txtar.File{{Name: "script", Data: s.section("script")}, {Name: "log", Data: []byte(log)}}
	if err := os.WriteFile(s.path, txtar.Format(s.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTrimmedPodsAreEnough plays the golden rollouts with pods trimmed as in the cache of a real manager. The logs must
// not change.
func TestTrimmedPodsAreEnough(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := NewWorld(t.Context(), 0)
			w.trim = new(informer.Trim).Pod
			w.Managers[0].Client.Trim = w.trim
			if err := w.Play(t.Context(), s.script); err != nil {
				t.Fatalf("%v\n%s", err, w.Film)
			}
			if diff := cmp.Diff(string(s.section("log")), w.Film.String()+w.checker.Tally()); diff != "" {
				t.Errorf("log (-whole +trimmed):\n%s", diff)
			}
		})
	}
}

// TestReplays plays every scenario in many orders of events. Golden logs show what happens, replays whether it may.
func TestReplays(t *testing.T) {
	t.Parallel()
	for name, s := range scenarios(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tidy := s.tidy()
			if tidy.err != nil {
				t.Fatal(tidy.err)
			}
			first, last := *start, *start+uint64(*seeds)-1
			if *seed != 0 {
				first, last = *seed, *seed
			}
			for n := first; n <= last; n++ {
				if err := replay(t.Context(), s.script, n, tidy.ending, n == first+1); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// replay plays a script with a seed, at times twice, and checks its end. A seed must repeat a history, and so a failure.
func replay(ctx context.Context, script Script, seed uint64, ending string, twice bool) error {
	w, err := play(ctx, script, seed)
	if err == nil && twice {
		var again *World
		if again, err = play(ctx, script, seed); err == nil && again.Transcript() != w.Transcript() {
			err = fmt.Errorf("two runs differ:\n%s", cmp.Diff(w.Transcript(), again.Transcript()))
		}
	}
	if err == nil {
		err = w.CheckConverged(ctx)
	}
	if err == nil && !cutsPauses(seed) && w.Ending() != ending {
		err = fmt.Errorf("ends with %s, the tidy run with %s", w.Ending(), ending)
	}
	if err != nil {
		return fmt.Errorf("-seed=%d: %w\n%s", seed, err, w.Film.last(60))
	}
	return nil
}
