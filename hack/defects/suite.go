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
	// imports are the packages that it is made of, one a line.
	imports string
}

// withImports is the suite with what it is made of.
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

// sees says whether a defect can make a difference to the suite.
func (s suite) sees(d defect) bool {
	if s.pkg == "" {
		return d.pkg() != controller
	}
	return strings.Contains(s.imports, d.pkg()+"\n")
}

// suites are all there are. Of the simulator's orders of events and histories a few have to do: what no small number of
// them shows is seldom seen by a large one.
func suites() []suite {
	return []suite{
		{name: "own tests", args: []string{"-test.short"}},
		{name: "plan", pkg: "internal/plan", args: []string{"-test.short"}},
		{name: "golden", pkg: "internal/sim", args: []string{"-test.run=^TestGolden$"}},
		{name: "simulator", pkg: "internal/sim", args: []string{
			"-test.short", "-seeds=8", "-rapid.seed=1", "-rapid.checks=50", "-rapid.nofailfile", "-rapid.shrinktime=0s",
		}},
	}
}

// controller has tests that need an API server; the simulator runs all of it without one.
const controller = "internal/controller"

// play runs suites until one fails, and returns its name; empty if none does.
func (d defect) play(ctx context.Context, suites []suite) (killer string, err error) {
	dir, err := os.MkdirTemp("", "defect-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := d.overlay(dir)
	if err != nil {
		return "", err
	}
	for _, s := range suites {
		if !s.sees(d) {
			continue
		}
		pkg := cmp.Or(s.pkg, d.pkg())
		binary := filepath.Join(dir, filepath.Base(pkg)+".test")
		if _, err := os.Stat(binary); err != nil {
			if err := d.build(ctx, overlay, binary, pkg); err != nil {
				return "", err
			}
		}
		if failed, err := d.fails(ctx, binary, pkg, s.args); failed || err != nil {
			return s.name, err
		}
	}
	return "", nil
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

// fails says whether tests fail. One that never ends counts as failed, and a package without tests does not.
func (d defect) fails(ctx context.Context, binary, pkg string, args []string) (bool, error) {
	test := exec.CommandContext(ctx, binary, append(args, "-test.failfast", "-test.timeout=10m")...)
	test.Dir = filepath.Join(d.root, pkg)
	err := test.Run()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}
