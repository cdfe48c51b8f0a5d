// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// suite is a set of tests of one package.
type suite struct {
	name string
	// pkg is the package; empty for the one that has the defect.
	pkg string
	// args choose the tests.
	args []string
	// long says that the suite takes much longer than others.
	long bool
	// builds says that the suite builds the manager, and depends on all of it.
	builds bool
	// imports are the packages that the suite depends on, one a line.
	imports string
}

// withImports returns the suite with the packages that it depends on.
func (s suite) withImports(ctx context.Context, root string) (suite, error) {
	if s.pkg == "" || s.builds {
		return s, nil
	}
	list := exec.CommandContext(ctx, "go", "list", "-deps", "./"+s.pkg)
	list.Dir = root
	out, err := list.Output()
	s.imports = string(out)
	return s, err
}

// sees reports whether a defect can affect the suite.
func (s suite) sees(d defect) bool {
	return s.pkg == "" || s.builds || strings.Contains(s.imports, d.pkg()+"\n")
}

// suites returns the simulator's suites, cheapest first, and then those that look at what it does not notice: the tests of all
// plans, and the package's own tests without an API server. The long suites play few orders of events and histories, because a
// large number of them rarely detects what a small one does not.
func suites() []suite {
	all := []suite{
		{name: "golden", args: []string{"-test.run=^TestGolden$"}},
		{name: "histories", long: true, args: []string{"-test.run=^TestHistories$", "-rapid.checks=300"}},
		{name: "orders", long: true, args: []string{"-test.run=^TestReplays$", "-seeds=4"}},
		{
			name: "others", long: true,
			args: []string{"-test.skip=^(TestGolden|TestReplays|TestHistories|TestCrashPoints)$", "-test.short", "-rapid.checks=50"},
		},
		{name: "crashes", long: true, args: []string{"-test.run=^TestCrashPoints$", "-sample=16"}},
	}
	for i := range all {
		all[i].pkg = simulator
		all[i].args = append(all[i].args, "-rapid.seed=1", "-rapid.shrinktime=0s")
	}
	return append(all, suite{name: "plan", pkg: "internal/plan", args: []string{"-test.short"}}, ownTests())
}

// ownTests returns the suite of the package that has the defect.
func ownTests() suite {
	return suite{name: "own tests", args: []string{"-test.short", "-test.skip=^TestController$"}}
}

// differential returns the suite that compares sets with those of other kinds on a local cluster. A defect that only it has to
// notice is one that the simulator's rules share.
func differential(pairs int) suite {
	return suite{
		name: "differential", pkg: "test/differential", long: true, builds: true,
		args: []string{"-test.run=^TestPairs$", "-pairs=" + strconv.Itoa(pairs)},
	}
}

const simulator = "internal/testing/sim"

// kill is the test that detected a defect: its suite, and the first failing test. Both are empty if none did.
type kill struct {
	suite *suite
	test  string
}

// bySimulator reports whether the simulator noticed the defect.
func (k kill) bySimulator() bool { return k.suite != nil && k.suite.pkg == simulator }

// play runs suites until one fails.
func (d defect) play(ctx context.Context, suites []suite) (killer kill, err error) {
	dir, err := os.MkdirTemp("", "defect-")
	if err != nil {
		return kill{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := d.overlay(dir)
	if err != nil {
		return kill{}, err
	}
	for i := range suites {
		s := &suites[i]
		if !s.sees(d) {
			continue
		}
		pkg := cmp.Or(s.pkg, d.pkg())
		binary := filepath.Join(dir, filepath.Base(pkg)+".test")
		if _, err := os.Stat(binary); err != nil {
			if err := d.build(ctx, overlay, binary, pkg); err != nil {
				return kill{}, err
			}
		}
		if test, err := d.fails(ctx, binary, pkg, overlay, s); test != "" || err != nil {
			return kill{s, test}, err
		}
	}
	return kill{}, nil
}

// build compiles the tests of a package with the defect.
func (d defect) build(ctx context.Context, overlay, binary, pkg string) error {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./"+pkg)
	build.Dir = d.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the defect does not compile: %w\n%s", err, out)
	}
	return nil
}

// fails returns the first test that fails; empty if none does or the package has no tests. A defect may make a test run forever.
func (d defect) fails(ctx context.Context, binary, pkg, overlay string, s *suite) (string, error) {
	timeout := "-test.timeout=5m"
	switch {
	case s.builds:
		timeout = "-test.timeout=0"
	case s.long:
		timeout = "-test.timeout=20m"
	}
	test := exec.CommandContext(ctx, binary, slices.Concat(s.args, []string{"-test.failfast", timeout})...)
	test.Dir = filepath.Join(d.root, pkg)
	// A failure that a random test writes into the working tree would be played again with every later defect.
	test.Env = append(test.Environ(), "RAPID_NOFAILFILE=true")
	if s.builds {
		test.Env = append(test.Env, "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
	}
	return outcome(ctx, test)
}

// outcome runs tests and returns the first that fails; empty if none does, or the package has no tests.
func outcome(ctx context.Context, test *exec.Cmd) (string, error) {
	out, err := test.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return firstFailure(string(out)), nil
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	default:
		return "", err
	}
}

// firstFailure returns the first failing test in the output of tests, or the panic that ended them. A timeout is a panic
// too.
func firstFailure(out string) string {
	first := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if failed, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ := strings.Cut(failed, " ")
			if first != "" && !strings.HasPrefix(name, first+"/") {
				return first
			}
			first = name
		}
		if first == "" && strings.HasPrefix(line, "panic: ") {
			return line
		}
	}
	return cmp.Or(first, "no test in particular")
}
