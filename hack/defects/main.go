// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command defects tests the tests. It puts one mistake after another into the code, each of a kind that developers make, and
// runs the suites until one of them fails, the simulator's first. A mistake that no suite detects is a missing test. One that the
// simulator does not detect is something that cannot happen there.
//
// With -mutants it changes the planners and the model by rules instead, at places that a seed chooses.
//
// The working tree is not changed: the compiler reads another content for one file. Each mistake is a file in testdata: a
// sentence about what breaks, the text to find, exactly once, in the file that its name says, and the text that replaces it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"rollset.dev/rollset/internal/testing/testbed/assets"
)

// These are the numbers of a hundred defects that may survive: all suites, and the simulator alone.
const (
	tolerated      = 5
	toleratedBySim = 10
)

// mostMemory is how much address space a process may use, in bytes. A defect may make a test create objects without end.
const mostMemory = 8 << 30

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "defects:", err)
		os.Exit(1)
	}
}

// run plays the defects that the arguments choose.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("defects", flag.ContinueOnError)
	only := flags.String("run", "", "play only the defects whose names match")
	quick := flags.Bool("quick", false, "leave out the long suites of the simulator")
	pairs := flags.Int("pairs", 0, "play so many pairs of test/differential instead of all suites")
	size := flags.Int("mutants", 0, "play so many changes that rules make, in the planners and the model, instead of defects")
	seed := flags.Uint64("seed", 1, "chooses the mutants")
	jobs := flags.Int("jobs", runtime.NumCPU(), "how many defects or mutants are played at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	root, err := assets.ModuleRoot()
	if err != nil {
		return err
	}
	if *size > 0 {
		if err := limitMemory(); err != nil {
			return err
		}
		return sample(ctx, root, draw{
			size: *size, seed: *seed, quick: *quick, jobs: *jobs, only: func(m mutant) bool { return chosen.MatchString(m.key()) },
		}, out)
	}
	all, err := load(root)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(d defect) bool { return !chosen.MatchString(d.name) })
	suites := suites()
	if *quick {
		suites = slices.DeleteFunc(suites, func(s suite) bool { return s.long })
	}
	if *pairs > 0 {
		suites, *quick = []suite{differential(*pairs)}, true
	}
	for i := range suites {
		if suites[i], err = suites[i].withImports(ctx, root); err != nil {
			return err
		}
	}
	if *pairs == 0 { // etcd maps more than it uses
		if err := limitMemory(); err != nil {
			return fmt.Errorf("limit memory: %w", err)
		}
	}
	c := campaign{all: all, suites: suites, quick: *quick, out: out}
	return c.play(ctx, *jobs)
}

// limitMemory limits the memory of this process and of those that it starts.
func limitMemory() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		return err
	}
	limit.Cur = min(limit.Cur, mostMemory)
	return syscall.Setrlimit(syscall.RLIMIT_AS, &limit)
}

// campaign plays defects against suites.
type campaign struct {
	all    []defect
	suites []suite
	// quick says that long suites are left out, so that the simulator is not judged.
	quick bool
	out   io.Writer
	// mu guards what follows, and the output.
	mu sync.Mutex
	// kills counts the defects that each suite detected, by its name.
	kills map[string]int
	// survivors are the defects that no suite detected, and unseen those that the simulator did not detect.
	survivors, unseen []string
}

// play plays some defects at a time and prints which test detected each. It fails if more of a hundred survive than may.
func (c *campaign) play(ctx context.Context, jobs int) error {
	c.kills = map[string]int{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(jobs)
	for _, d := range c.all {
		group.Go(func() error {
			start := time.Now()
			killer, err := d.play(ctx, c.suites)
			if err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			c.note(d, killer, time.Since(start))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return c.sum()
}

// note prints which test detected a defect, and counts it.
func (c *campaign) note(d defect, killer kill, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	verdict := "SURVIVES"
	if killer.suite == nil {
		c.survivors = append(c.survivors, d.name+": "+d.why)
	} else {
		c.kills[killer.suite.name]++
		verdict = killer.suite.name + ": " + killer.test
	}
	if !killer.bySimulator() {
		c.unseen = append(c.unseen, d.name+": "+d.why)
	}
	c.tell("%5.0fs  %-40s %s\n", took.Seconds(), d.name, verdict)
}

// sum prints how many defects each suite detected, and judges them all.
func (c *campaign) sum() error {
	c.tell("\n")
	for _, s := range c.suites {
		c.tell("%-10s %d\n", s.name, c.kills[s.name])
	}
	all := len(c.all)
	c.tell("%d of %d noticed, %d by the simulator alone\n", all-len(c.survivors), all, all-len(c.unseen))
	c.list("not noticed", c.survivors)
	if !c.quick {
		c.list("not noticed by the simulator", c.unseen)
	}
	if len(c.survivors)*100 > tolerated*all {
		return fmt.Errorf("%d of %d survive, at most %d%% may", len(c.survivors), all, tolerated)
	}
	if !c.quick && len(c.unseen)*100 > toleratedBySim*all {
		return fmt.Errorf("%d of %d survive the simulator, at most %d%% may", len(c.unseen), all, toleratedBySim)
	}
	return nil
}

// list prints defects below a headline, if there are any.
func (c *campaign) list(headline string, defects []string) {
	if len(defects) > 0 {
		slices.Sort(defects)
		c.tell("%s:\n  %s\n", headline, strings.Join(defects, "\n  "))
	}
}

// tell prints to a terminal, which does not fail.
func (c *campaign) tell(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format, args...) }

// load reads the defects of a module, sorted by name.
func load(root string) ([]defect, error) {
	paths, err := filepath.Glob(filepath.Join(root, "hack", "defects", "testdata", "*.txtar"))
	if err != nil {
		return nil, err
	}
	var all []defect
	for _, path := range paths {
		d, err := parse(root, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, d)
	}
	return all, nil
}
