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
	"strings"
)

// suite is a set of tests of one package. Cheaper ones come first.
type suite struct {
	name string
	// pkg is the package; empty for the one that has the defect.
	pkg string
	// args choose the tests.
	args []string
	// imports are the packages that the suite depends on, one a line.
	imports string
}

// withImports returns the suite with the packages that it depends on.
func (s suite) withImports(ctx context.Context, root string) (suite, error) {
	if s.pkg == "" {
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
	return s.pkg == "" || strings.Contains(s.imports, d.pkg()+"\n")
}

// long returns the long parts of the simulator, cheapest first. They play few orders of events and histories, because a
// large number of them rarely detects what a small one does not.
func long() []suite {
	parts := []suite{
		{name: "histories", args: []string{"-test.run=^TestHistories$", "-rapid.checks=300"}},
		{name: "orders", args: []string{"-test.run=^TestReplays$", "-seeds=8"}},
		{name: "others", args: []string{"-test.skip=^(TestGolden|TestReplays|TestHistories|TestCrashPoints)$", "-test.short", "-rapid.checks=50"}},
		{name: "crashes", args: []string{"-test.run=^TestCrashPoints$", "-sample=3"}},
	}
	for i := range parts {
		parts[i].pkg = simulator
		parts[i].args = append(parts[i].args, "-rapid.seed=1", "-rapid.shrinktime=0s")
	}
	return parts
}

// short returns the suites that take seconds: the package's own tests without an API server, those of all plans, and the
// golden rollouts.
func short() []suite {
	return []suite{
		{name: "own tests", args: []string{"-test.short", "-test.skip=^TestController$"}},
		{name: "plan", pkg: "internal/plan", args: []string{"-test.short"}},
		{name: "golden", pkg: simulator, args: []string{"-test.run=^TestGolden$"}},
	}
}

const simulator = "internal/testing/sim"

// kill is the test that detected a defect: a suite, and its first failing test. Both are empty if none did.
type kill struct{ suite, test string }

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
	for _, s := range suites {
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
		if test, err := d.fails(ctx, binary, pkg, s.args); test != "" || err != nil {
			return kill{s.name, test}, err
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

// fails returns the first test that fails; empty if none does or the package has no tests.
func (d defect) fails(ctx context.Context, binary, pkg string, args []string) (string, error) {
	test := exec.CommandContext(ctx, binary, append(args, "-test.failfast", "-test.timeout=20m")...)
	test.Dir = filepath.Join(d.root, pkg)
	// A failure that a random test writes into the working tree would be played again with every later defect.
	test.Env = append(test.Environ(), "RAPID_NOFAILFILE=true")
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
