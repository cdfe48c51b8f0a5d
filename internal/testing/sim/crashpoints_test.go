// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

var sample = flag.Int("sample", 1, "play one crash point in so many")

// crashPoint is one fault: the n-th write of the manager meets it, and from then on one kind of object reaches its
// caches late.
type crashPoint struct {
	n     int
	fault apiserver.Fault
	late  apiserver.Kind // empty if all caches are fresh
}

func (p crashPoint) String() string {
	text := fmt.Sprintf("write %d: %s", p.n, p.fault)
	if p.late != "" {
		text += ", stale " + string(p.late) + "s"
	}
	return text
}

// lateness is how long a stale cache stays so.
const lateness = 3 * time.Second

// crashPoints returns all faults of the n-th write, with each of the kinds late.
func crashPoints(n int, kinds []apiserver.Kind) []crashPoint {
	var points []crashPoint
	for _, fault := range []apiserver.Fault{apiserver.CrashBefore, apiserver.CrashAfter, apiserver.Failed500, apiserver.TimeoutWritten, apiserver.Refused409} {
		for _, late := range kinds {
			points = append(points, crashPoint{n: n, fault: fault, late: late})
		}
	}
	return points
}

// plan makes a plan of faults of crash points. A stale cache begins after a crash where it was before the write that came
// before.
func (w *World) plan(points []crashPoint) apiserver.FaultPlan {
	n := 0
	var last, version int64
	return func(apiserver.Write) apiserver.Fault {
		n++
		last, version = version, w.Store.Version()
		m := w.Managers[0]
		m.Behind = nil
		i := slices.IndexFunc(points, func(p crashPoint) bool { return p.n == n })
		if i < 0 {
			return apiserver.NoFault
		}
		if late := points[i].late; late != "" {
			m.Behind = map[apiserver.Kind]int64{late: max(last, lastEditOfPod(w.Store), 1)}
			w.turns.asleep[m.Name+string(late)] = w.Now().Add(lateness)
		}
		return points[i].fault
	}
}

// lastEditOfPod returns the version of the last write of a user to a pod, or of the garbage collector for one, which a manager
// must know to do what the user asks for: the pods of a deleted set that are to be adopted by the next one of its name.
func lastEditOfPod(store *apiserver.Store) int64 {
	last := int64(0)
	for e := range store.History(apiserver.Pods) {
		if e.Actor == userActor || e.Actor == apiserver.GCActor {
			last = e.Version
		}
	}
	return last
}

// course is how a scenario went.
type course struct {
	// writes are the writes that were tried, in order.
	writes []string
	// ending is the state of all objects in the end.
	ending string
	// tally counts what managers made and deleted on the way.
	tally map[string]int
}

// follow plays a scenario with its faults.
func follow(ctx context.Context, s scenario, observe func(apiserver.Write), points ...crashPoint) (course, error) {
	var c course
	w := NewWorld(ctx, 0)
	fault := w.plan(points)
	w.Managers[0].Client.Faults = func(write apiserver.Write) apiserver.Fault {
		c.writes = append(c.writes, write.String())
		observe(write)
		return fault(write)
	}
	var err error
	for i := 0; i < len(s.script) && err == nil; i++ {
		clear(w.turns.asleep) // what users do next they do to a controller that knows what they did before
		err = w.Play(ctx, s.script[i:i+1])
	}
	if err == nil {
		err = w.CheckConverged(ctx)
	}
	c.ending, c.tally = everything{w}.String(), madeAndDeleted(w.Store)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, w.Film.last(60))
	}
	return c, err
}

// TestCrashPoints lets every single write of many scenarios meet every fault, and expects the same end.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	sites := &siteBook{}
	t.Run("each", func(t *testing.T) {
		for name, s := range shortScenarios(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				crashEverywhere(t, s, sites)
			})
		}
	})
	if !t.Failed() {
		sites.compare(t)
	}
}

// crashEverywhere plays a scenario once for each crash point.
func crashEverywhere(t *testing.T, s scenario, sites *siteBook) {
	var lines []string
	reference, err := follow(t.Context(), s, func(apiserver.Write) { lines = append(lines, site()) })
	if err != nil {
		t.Fatal(err)
	}
	first := len(s.path) // other points in each scenario, because most have fewer writes than one in how many is played
	for n := range reference.writes {
		for i, p := range crashPoints(n+1, s.lateKinds()) {
			if (first+n+i+i/3)%*sample != 0 && !sites.draws(lines[n], p) { // all kinds of staleness take turns
				continue
			}
			if err := s.survives(t.Context(), reference, sites, p); err != nil {
				t.Error(err)
				break
			}
		}
	}
}

// survives plays a scenario with crash points and compares its end with that of a run without.
func (s scenario) survives(ctx context.Context, reference course, sites *siteBook, points ...crashPoint) error {
	n := 0
	got, err := follow(ctx, s, func(apiserver.Write) {
		n++
		for _, p := range points {
			if p.n == n {
				sites.note(site(), p.fault)
			}
		}
	}, points...)
	oldSpec := slices.ContainsFunc(points, func(p crashPoint) bool { return p.late == apiserver.RollSets })
	switch {
	case err != nil:
	case !s.endsLike(got.ending, reference.ending) && !s.isAbout("leftover-claim-kept"):
		// A claim that could not be made is not left over.
		err = fmt.Errorf("ends with\n%s\nwithout faults with\n%s", got.ending, reference.ending)
	case !s.changesInPassing() && exceeds(got.tally, allowed(reference.tally, points)) && !oldSpec && !s.isAbout("in-place-retag"):
		// A manager that starts in the middle of an update to another tag of one image recreates the pod
		// (docs/adr/0005). A manager that sees an old spec may follow it; otherwise nothing is done twice.
		err = fmt.Errorf("wrote %v, without faults %v", got.tally, reference.tally)
	default:
		sites.count()
		return nil
	}
	return fmt.Errorf("%v of %s: %w", points, reference.writes[points[0].n-1], err)
}

// allowed returns what managers may make and delete under crash points: what they did without. Only in a pair, each that begins
// with pods of the past may have one too many, which it does not come across and deletes when it sees it (docs/adr/0006).
func allowed(tally map[string]int, points []crashPoint) map[string]int {
	tally = maps.Clone(tally)
	for _, p := range points {
		if len(points) > 1 && p.late == apiserver.Pods && p.fault.Crashes() {
			tally["create Pod"]++
			tally["delete Pod"]++
		}
	}
	return tally
}

// changesInPassing reports whether something happens at a given time, and not when all is done. A fault lets it meet another
// moment of a rollout, which may need more writes.
func (s scenario) changesInPassing() bool {
	settled := true
	for _, step := range s.script {
		switch step.command.name {
		case "run":
			settled = false
		case "settle":
			settled = true
		case "status", "revisions":
		default:
			if !settled {
				return true
			}
		}
	}
	return false
}

// endsLike reports whether an ending is the one that is wanted. Where templates change in passing, one may have been replaced
// before it was recorded, and another may have been wanted again by an old spec.
func (s scenario) endsLike(got, want string) bool {
	return slices.EqualFunc(strings.Split(got, "\n"), strings.Split(want, "\n"), func(got, want string) bool {
		recorded, isHistory := strings.CutPrefix(got, "revisions ")
		if !isHistory || !s.changesInPassing() {
			return got == want
		}
		return sets.New(strings.Split(strings.TrimPrefix(want, "revisions "), ", ")...).HasAll(strings.Split(recorded, ", ")...)
	})
}

// exceeds reports whether there is more of anything than there should be.
func exceeds(got, want map[string]int) bool {
	for what, n := range got {
		if n > want[what] {
			return true
		}
	}
	return false
}

// longest is how many writes a scenario has at most that is played with every crash point.
const longest = 30

// shortScenarios returns the scenarios with few writes and one manager. If one of two managers sees an old spec, they
// undo each other's work in a hot loop, because time does not pass here.
func shortScenarios(t *testing.T) map[string]scenario {
	short := scenarios(t)
	for name, s := range short {
		tidy := s.tidy()
		if tidy.err != nil {
			t.Fatalf("%s: %v", name, tidy.err)
		}
		if tidy.writes > longest || tidy.managers > 1 {
			delete(short, name)
		}
	}
	if len(short) < 40 {
		t.Fatalf("only %d scenarios have at most %d writes", len(short), longest)
	}
	return short
}

// lateKinds returns the kinds that may be late where the scenario has objects of them. The empty kind means that none is.
func (s scenario) lateKinds() []apiserver.Kind {
	kinds, script := []apiserver.Kind{"", apiserver.Pods}, string(s.section("script"))
	if strings.Contains(script, "claims ") {
		kinds = append(kinds, apiserver.Claims)
	}
	if strings.Contains(script, "budget ") {
		kinds = append(kinds, apiserver.Budgets)
	}
	return append(kinds, apiserver.RollSets)
}

// isAbout reports whether a scenario is the one of a file.
func (s scenario) isAbout(name string) bool { return filepath.Base(s.path) == name+".txtar" }

// TestCrashPointsReachEveryPhase expects a write in every phase of a step, after the last step, and when a revision is
// rejected, among the scenarios with few writes, whose every write meets every fault.
func TestCrashPointsReachEveryPhase(t *testing.T) {
	t.Parallel()
	reached := map[string]bool{}
	for name, s := range shortScenarios(t) {
		if !strings.HasPrefix(name, "steps") {
			continue
		}
		w := NewWorld(t.Context(), 0)
		w.Managers[0].Client.Faults = func(apiserver.Write) apiserver.Fault {
			if set := w.Set(); set != nil && set.Status.Rollout != nil {
				r := set.Status.Rollout
				reached[string(r.Phase)] = true
				reached["given up"] = reached["given up"] || r.Step == 0
				reached["all done"] = reached["all done"] || r.Step > r.Steps
			}
			return apiserver.NoFault
		}
		if err := w.Play(t.Context(), s.script); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, phase := range []string{"Rolling", "Soaking", "Gated", "Paused", "Failed", "given up", "all done"} {
		if !reached[phase] {
			t.Errorf("no short scenario writes when a rollout in steps is %s", phase)
		}
	}
}
