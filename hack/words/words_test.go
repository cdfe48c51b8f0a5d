// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestProse(t *testing.T) {
	page := strings.ReplaceAll(`# A heading

<!-- a comment
of two lines -->
A set keeps |replicas| pods. It
[replaces](docs/x.md#y) those that ![picture](z.svg) fail.

|||sh
kubectl get pods
|||

* one item
  of two lines
* another

| a | table |
|---|---|
`, "|||", "```")
	page = strings.ReplaceAll(page, "|replicas|", "`replicas`")
	want := "A set keeps kubectl pods. It replaces those that  fail.\none item of two lines\nanother"
	if diff := cmp.Diff(want, prose(page)); diff != "" {
		t.Errorf("prose (-want +got):\n%s", diff)
	}
}

func TestMeasureOf(t *testing.T) {
	got := measureOf("A set keeps five pods. It replaces pods that fail.\none item")
	if want := (measure{words: 12, sentences: 3, syllables: 15}); got != want {
		t.Errorf("measure %+v, want %+v", got, want)
	}
	if grade := got.grade(); math.Abs(grade-(0.39*4+11.8*15/12-15.59)) > 1e-9 {
		t.Errorf("grade %v is not Flesch and Kincaid's formula", grade)
	}
	if grade := measureOf("").grade(); grade != 0 {
		t.Errorf("grade %v of an empty page, want 0", grade)
	}
}

func TestSyllables(t *testing.T) {
	for w, want := range map[string]int{
		"a": 1, "one": 1, "pods": 1, "name": 1, "names": 1, "scaled": 1, "updated": 3, "changes": 2, "table": 2, "see": 1,
		"replica": 3, "available": 4, "rollout": 2, "the": 1, "StatefulSet": 4, "5": 1, "used": 1,
	} {
		if got := syllables(w); got != want {
			t.Errorf("%q has %d syllables, want %d", w, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	source := "package p\n\n// f is what nobody\n// calls, for it is old.\nfunc f() { _ = \"somebody\" }\n"
	var names []string
	for _, f := range search(allMarks(), "p.go", comments(source)) {
		names = append(names, f.mark)
	}
	if diff := cmp.Diff([]string{"nobody", ", for"}, names); diff != "" {
		t.Errorf("marks in comments (-want +got):\n%s", diff)
	}
	if got := search(allMarks(), "x.md", "a field, for example this one, and everybody"); got != nil {
		t.Errorf("marks in plain English: %v", got)
	}
}

func TestRun(t *testing.T) {
	text, places, err := run(fstest.MapFS{
		"README.md":     {Data: []byte("Nobody reads this.\n")},
		"docs/adr/1.md": {Data: []byte("A decision.\n")},
		".git/x.md":     {Data: []byte("Not a page of the project: nobody.\n")},
		"x.go":          {Data: []byte("package x // whoever\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("README.md: nobody: Nobody reads this.\nx.go: whoever: whoever\n", places); diff != "" {
		t.Errorf("places of marks (-want +got):\n%s", diff)
	}
	for _, want := range []string{"= README and docs", "= docs/adr", "total                 1         1\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestComments keeps the phrases to avoid out of the comments of Go files.
func TestComments(t *testing.T) {
	sources, err := read(os.DirFS("../.."), ".go")
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 500 {
		t.Fatalf("%d Go files; is this the root of the project?", len(sources))
	}
	for _, s := range sources {
		for _, f := range search(allMarks(), s.path, comments(s.text)) {
			t.Errorf("%s: %q in %q %s", f.path, f.mark, f.context, advice(f.mark))
		}
	}
}

// advice returns why a mark is to be avoided, and what to write instead.
func advice(name string) string {
	for _, m := range allMarks() {
		if m.name == name {
			return m.reason + "; write: " + m.better
		}
	}
	return ""
}
