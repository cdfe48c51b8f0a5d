// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command defects tests the tests. It puts one mistake after another into the code, each of a kind that developers make, and
// runs the suites until one of them fails. A mistake that no suite detects is a missing test.
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
	"slices"
	"strings"
	"syscall"
	"time"

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
	quick := flags.Bool("quick", false, "leave out the long part of the simulator, which looks at what nothing else has noticed")
	simOnly := flags.Bool("sim", false, "run only the simulator: how much of it all does it see by itself?")
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
	all, err := load(root)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(d defect) bool { return !chosen.MatchString(d.name) })
	suites, limit := slices.Concat(short(), long()), tolerated
	if *quick {
		suites = short()
	}
	if *simOnly {
		suites = slices.DeleteFunc(suites, func(s suite) bool { return s.pkg != simulator })
		limit = toleratedBySim
	}
	for i := range suites {
		if suites[i], err = suites[i].withImports(ctx, root); err != nil {
			return err
		}
	}
	if err := limitMemory(); err != nil {
		return fmt.Errorf("limit memory: %w", err)
	}
	c := campaign{all: all, suites: suites, out: out}
	return c.play(ctx, limit)
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
	out    io.Writer
}

// play plays the defects one at a time and prints which test detected each. It fails if more of a hundred survive than the
// limit.
func (c campaign) play(ctx context.Context, limit int) error {
	kills := map[string]int{}
	var survivors []string
	for i, d := range c.all {
		start := time.Now()
		killer, err := d.play(ctx, c.suites)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		kills[killer.suite]++
		verdict := killer.suite + ": " + killer.test
		if killer.suite == "" {
			verdict = "SURVIVES"
			survivors = append(survivors, d.name+": "+d.why)
		}
		c.tell("%3d of %d %5.0fs  %-40s %s\n", i+1, len(c.all), time.Since(start).Seconds(), d.name, verdict)
	}
	c.tell("\n")
	for _, s := range c.suites {
		c.tell("%-10s %d\n", s.name, kills[s.name])
	}
	c.tell("%d of %d noticed\n", len(c.all)-len(survivors), len(c.all))
	if len(survivors) > 0 {
		c.tell("not detected:\n  %s\n", strings.Join(survivors, "\n  "))
	}
	if len(survivors)*100 > limit*len(c.all) {
		return fmt.Errorf("%d of %d survive, at most %d%% may", len(survivors), len(c.all), limit)
	}
	return nil
}

// tell prints to a terminal, which does not fail.
func (c campaign) tell(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format, args...) }

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
