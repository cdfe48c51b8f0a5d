// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// trial is a run of tests that may notice mutants.
type trial struct {
	suite
	// took is how long it takes without a mutant.
	took time.Duration
	// reaches are the numbers of the mutants whose places it comes to.
	reaches map[int]bool
}

// together is how many golden rollouts one process plays.
const together = 48

// sampling plays a sample of the mutants against trials.
type sampling struct {
	*mutator
	dir, overlaid string
	out           io.Writer
	// quick trials come first: the tests of packages, then each golden rollout. The others come in their order.
	packages, goldens, long []trial
	// argued has why mutants are no mistakes, by their keys.
	argued map[string]string
	// mu guards what follows, and the output.
	mu sync.Mutex
	// noticed and excused count the mutants that a test notices, and those that are no mistakes. survivors are the others.
	noticed, excused int
	survivors        []string
}

// draw says which mutants are played.
type draw struct {
	// size is how many, and seed chooses them among those that only keeps.
	size int
	seed uint64
	only func(mutant) bool
	// quick leaves the long trials out.
	quick bool
	// jobs is how many mutants are played at a time.
	jobs int
}

// sample plays some mutants, and prints which test noticed each.
func sample(ctx context.Context, root string, d draw, out io.Writer) (err error) {
	m, err := mutate(root)
	if err != nil {
		return err
	}
	argued, err := equivalents(root, m.all)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &sampling{mutator: m, dir: dir, out: out, argued: argued}
	if s.overlaid, err = writeOverlay(dir, m.overlaid); err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(m.all), func(m mutant) bool { return !d.only(m) })
	_, _ = fmt.Fprintf(out, "%d mutants, of which SAMPLE=%d SEED=%d chooses\n", len(chosen), d.size, d.seed)
	chance := rand.New(rand.NewPCG(d.seed, 0)) //nolint:gosec // a sample is to be repeatable
	chance.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	if err := s.explore(ctx); err != nil {
		return err
	}
	if !d.quick {
		if err := s.exploreLong(ctx); err != nil {
			return err
		}
	}
	return s.play(ctx, chosen[:min(d.size, len(chosen))], d.jobs)
}

// explore compiles the tests, and runs each trial once without a mutant, to learn how long it takes and what it reaches.
// These are the quick ones: the tests of packages, and the golden rollouts.
func (s *sampling) explore(ctx context.Context) error {
	for _, dir := range append(s.folders(), "internal/status") {
		own := suite{name: dir, pkg: dir, args: []string{"-test.short", "-test.skip=^(TestExhaustively|TestAllocationsGrowWithPods)$"}}
		if err := s.learn(ctx, &s.packages, own); err != nil {
			return err
		}
	}
	slices.SortFunc(s.packages, func(a, b trial) int { return int(a.took - b.took) })
	paths, err := filepath.Glob(filepath.Join(s.root, simulator, "testdata", "*.txtar"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		if err := s.learn(ctx, &s.goldens, suite{name: name, pkg: simulator, args: []string{"-test.run=^TestGolden$/^" + name + "$"}}); err != nil {
			return err
		}
	}
	slices.SortFunc(s.goldens, func(a, b trial) int { return int(a.took - b.took) })
	return nil
}

// exploreLong does the same with what takes long.
func (s *sampling) exploreLong(ctx context.Context) error {
	for _, long := range []suite{
		{name: "histories", pkg: simulator, args: []string{"-test.run=^TestHistories$", "-rapid.checks=40", "-rapid.seed=1", "-rapid.shrinktime=0s"}},
		{name: "plan", pkg: "internal/plan", args: []string{"-test.short", "-test.run=^TestExhaustively$"}},
		{name: "orders", pkg: simulator, args: []string{"-test.run=^TestReplays$", "-seeds=3"}},
	} {
		if err := s.learn(ctx, &s.long, long); err != nil {
			return err
		}
	}
	return nil
}

// folders returns the folders that have mutants.
func (s *sampling) folders() []string {
	var dirs []string
	for _, m := range s.all {
		if !slices.Contains(dirs, m.pkg()) {
			dirs = append(dirs, m.pkg())
		}
	}
	return dirs
}

// learn adds a trial, after it was run without a mutant.
func (s *sampling) learn(ctx context.Context, trials *[]trial, of suite) error {
	binary := s.binary(of.pkg)
	if _, err := os.Stat(binary); err != nil {
		if err := (defect{root: s.root}).build(ctx, s.overlaid, binary, of.pkg); err != nil {
			return err
		}
		if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) { // the package has no tests
			return nil
		}
	}
	seen := filepath.Join(s.dir, "seen")
	start := time.Now()
	if test, err := s.run(ctx, of, 0, "ROLLSET_MUTANTS_SEEN="+seen); test != "" || err != nil {
		return errors.Join(fmt.Errorf("%s fails without a mutant: %s", of.name, test), err)
	}
	t := trial{suite: of, took: time.Since(start), reaches: map[int]bool{}}
	numbers, err := os.ReadFile(seen)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for word := range strings.FieldsSeq(string(numbers)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		t.reaches[n] = true
	}
	*trials = append(*trials, t)
	if len(numbers) == 0 {
		return nil
	}
	return os.Truncate(seen, 0)
}

// binary returns where the compiled tests of a package are.
func (s *sampling) binary(pkg string) string {
	return filepath.Join(s.dir, strings.ReplaceAll(pkg, "/", "-")+".test")
}

// run runs tests, if so long, and returns the first that fails.
func (s *sampling) run(ctx context.Context, of suite, limit time.Duration, env ...string) (string, error) {
	if limit > 0 {
		timeout, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = timeout
	}
	test := exec.CommandContext(ctx, s.binary(of.pkg), slices.Concat(of.args, []string{"-test.failfast"})...)
	test.Dir = filepath.Join(s.root, of.pkg)
	test.Env = append(test.Environ(), append(env, "RAPID_NOFAILFILE=true")...)
	failed, err := outcome(ctx, test)
	if errors.Is(err, context.DeadlineExceeded) {
		return "no end after " + limit.String(), nil
	}
	return failed, err
}

// play plays mutants, some at a time.
func (s *sampling) play(ctx context.Context, chosen []mutant, jobs int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	for i, m := range chosen {
		group.Go(func() error {
			start := time.Now()
			by, err := s.killer(ctx, m)
			if err != nil {
				return err
			}
			return s.note(i+1, m, by, time.Since(start))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	mistakes := len(chosen) - s.excused
	_, _ = fmt.Fprintf(s.out, "\n%d of %d noticed, %d are no mistakes; %.1f%%\n", s.noticed, len(chosen), s.excused, 100*float64(s.noticed)/float64(max(mistakes, 1)))
	slices.Sort(s.survivors)
	if len(s.survivors) > 0 {
		_, _ = fmt.Fprintf(s.out, "not noticed:\n  %s\n", strings.Join(s.survivors, "\n  "))
	}
	if len(s.survivors)*100 > tolerated*mistakes {
		return fmt.Errorf("%d of %d survive, at most %d%% may", len(s.survivors), mistakes, tolerated)
	}
	return nil
}

// note counts and prints what happened to the n-th mutant: which test noticed it, if any. It fails if one did that is argued to be no mistake.
func (s *sampling) note(n int, m mutant, by string, took time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := s.argued[m.key()]
	switch {
	case by != "" && why != "":
		return fmt.Errorf("%s is noticed by %s, and argued to be no mistake: %s", m.key(), by, why)
	case by != "":
		s.noticed++
	case why != "":
		s.excused++
		by = "NO MISTAKE: " + why
	default:
		by = "SURVIVES"
		s.survivors = append(s.survivors, fmt.Sprintf("%s:%d %s", m.file, m.line, m.key()))
	}
	_, _ = fmt.Fprintf(s.out, "%4d %5.1fs %s:%d %s: %s => %s: %s\n", n, took.Seconds(), m.file, m.line, m.in, m.was, m.now, by)
	return nil
}

// killer returns the test that notices a mutant; empty if none does.
func (s *sampling) killer(ctx context.Context, m mutant) (string, error) {
	env := "ROLLSET_MUTANT=" + strconv.Itoa(m.number)
	for _, t := range slices.Concat(s.packages, s.rollouts(m), s.long) {
		if !t.reaches[m.number] {
			continue
		}
		if test, err := s.run(ctx, t.suite, 10*t.took+10*time.Second, env); test != "" || err != nil {
			return t.name + ": " + test, err
		}
	}
	return "", nil
}

// rollouts returns the golden rollouts that come to the place of a mutant, the shortest first, a few and then many in one process.
func (s *sampling) rollouts(m mutant) []trial {
	var all []trial
	size := 6
	for _, t := range s.goldens {
		if !t.reaches[m.number] {
			continue
		}
		if len(all) == 0 || len(all[len(all)-1].args) == size {
			if len(all) > 0 {
				size = together
			}
			all = append(all, trial{suite: suite{name: "golden", pkg: simulator}, reaches: t.reaches})
		}
		last := &all[len(all)-1]
		last.args, last.took = append(last.args, t.name), last.took+t.took
	}
	for i := range all {
		all[i].args = []string{"-test.run=^TestGolden$/^(" + strings.Join(all[i].args, "|") + ")$"}
	}
	return all
}

// equivalents reads why mutants are no mistakes. Each has to be one still.
func equivalents(root string, all []mutant) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(root, "hack", "defects", "equivalent.txt"))
	if err != nil {
		return nil, err
	}
	argued := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, why, ok := strings.Cut(line, " -- ")
		if !ok || !slices.ContainsFunc(all, func(m mutant) bool { return m.key() == key }) {
			return nil, fmt.Errorf("equivalent.txt: no mutant has the name %q, with a reason behind --", key)
		}
		argued[key] = why
	}
	return argued, nil
}
