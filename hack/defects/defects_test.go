// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rollset.dev/rollset/internal/testing/testbed/assets"
)

func defects(t *testing.T) (root string, all []defect) {
	t.Helper()
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if all, err = load(root); err != nil || len(all) < 60 {
		t.Fatalf("%d defects: %v", len(all), err)
	}
	return root, all
}

// TestDefectsApply finds the place of every defect, and type-checks the result, so that no defect gets out of date.
func TestDefectsApply(t *testing.T) {
	t.Parallel()
	root, all := defects(t)
	fset := token.NewFileSet()
	find, err := exports(root)
	if err != nil {
		t.Fatal(err)
	}
	from := importer.ForCompiler(fset, "gc", find)
	for _, d := range all {
		source, err := d.source()
		if err != nil {
			t.Errorf("%s: %v", d.name, err)
			continue
		}
		if source == strings.Replace(source, d.instead, d.find, 1) {
			t.Errorf("%s changes nothing", d.name)
		}
		config := types.Config{Importer: from}
		if _, err := config.Check(d.pkg(), fset, d.parsed(t, fset, source), nil); err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

// parsed returns the files of the package with the defect in it.
func (d defect) parsed(t *testing.T, fset *token.FileSet, source string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(d.root, d.pkg(), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text := any(nil)
		if path == filepath.Join(d.root, d.file) {
			text = source
		}
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		files = append(files, file)
	}
	return files
}

// TestMutants checks that places are found in all folders, that each file with mutants can be read, and that no mutant that is argued
// to be no mistake is out of date.
func TestMutants(t *testing.T) {
	t.Parallel()
	root, _ := defects(t)
	m, err := mutate(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range mutated() {
		if !slices.ContainsFunc(m.all, func(m mutant) bool { return strings.HasPrefix(m.file, top+"/") }) {
			t.Errorf("no mutant in %s", top)
		}
	}
	for path, source := range m.overlaid {
		if _, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution); err != nil {
			t.Error(err)
		}
	}
	if _, err := equivalents(root, m.all); err != nil {
		t.Error(err)
	}
}

// TestSample plays two defects that a small package's own tests detect, and a change that is not a defect.
func TestSample(t *testing.T) {
	t.Parallel()
	root, all := defects(t)
	harmless := defect{
		name: "harmless", root: root, file: "internal/model/podstate/podstate.go",
		find: "max(now.Sub(since), 0) >= minReady", instead: "minReady <= max(now.Sub(since), 0)",
	}
	own := ownTests()
	want := map[string]string{"min-ready-ignored": own.name, "failed-pod-counts": own.name, harmless.name: ""}
	for _, d := range append(all, harmless) {
		killer, ok := want[d.name]
		if !ok {
			continue
		}
		got, err := d.play(t.Context(), []suite{own})
		by := ""
		if got.suite != nil {
			by = got.suite.name
		}
		if by != killer || err != nil {
			t.Errorf("%s: noticed by %q, want %q: %v", d.name, by, killer, err)
		}
		delete(want, d.name)
	}
	if len(want) > 0 {
		t.Errorf("not played: %v", want)
	}
}

// TestFirstFailure checks that the innermost of the tests that failed first is found, because a parent is printed before its
// children.
func TestFirstFailure(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/one (0.1s)\n        a_test.go:1: no\n    --- FAIL: TestA/two (0s)\nFAIL\n": "TestA/one",
		"--- FAIL: TestA (0.1s)\n--- FAIL: TestB (0.1s)\nFAIL\n":                                                                "TestA",
		"panic: test timed out after 20m0s\n\tTestA (20m0s)\n":                                                                  "panic: test timed out after 20m0s",
		"": "no test in particular",
	} {
		if got := firstFailure(out); got != want {
			t.Errorf("%q: %q, want %q", out, got, want)
		}
	}
}
