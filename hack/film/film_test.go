// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

const short = `A claim of
two lines.

-- script --
settle
-- log --
# a comment
0s       user       create the set
0s       manager    create a at v1 (missing)                       a:v1.
1s       reads      1 of 1 pods updated
1s       kubelet    a is available                                 a:v1+
2s       manager    delete a (recreate at v2: a long reason that ends next to the states) a:v1x b:v2.
`

func TestParse(t *testing.T) {
	got, err := parse(short)
	if err != nil {
		t.Fatal(err)
	}
	want := &film{
		claim: "A claim of two lines.", pods: []string{"a", "b"}, revisions: []string{"v1", "v2"},
		frames: []frame{
			{time: "0s", actor: "user", event: "create the set", pods: map[string]state{}},
			{time: "0s", actor: "manager", event: "create a at v1 (missing)", pods: map[string]state{"a": {"v1", '.'}}},
			{time: "1s", actor: "kubelet", event: "a is available", pods: map[string]state{"a": {"v1", '+'}}},
			{
				time: "2s", actor: "manager", event: "delete a (recreate at v2: a long reason that ends next to the states)",
				pods: map[string]state{"a": {"v1", 'x'}, "b": {"v2", '.'}},
			},
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(film{}, frame{}, state{})); diff != "" {
		t.Errorf("film (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{"no log": "A claim.\n", "not a line": "A claim.\n\n-- log --\nshort\n"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestDraw draws every golden rollout. Each picture must have a box for each state of a pod, and the sign of each state in
// the legend.
func TestDraw(t *testing.T) {
	paths, err := filepath.Glob("../../internal/testing/sim/testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden rollouts: %v", err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parse(string(txtar.Format(archive)))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		picture := draw(f)
		if err := wellFormed(picture); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if boxes := strings.Count(picture, "<title>"); boxes < len(f.pods) {
			t.Errorf("%s: %d boxes of %d pods", path, boxes, len(f.pods))
		}
	}
	f, err := parse(short)
	if err != nil {
		t.Fatal(err)
	}
	picture := draw(f)
	for _, want := range []string{
		"<title>a at v1: not ready</title>", "<title>a at v1: available</title>", "<title>a at v1: terminating</title>",
		"<title>b at v2: not ready</title>", ">create the set</text>", ">A claim of two lines.</text>", "× terminating</text>",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %q in\n%s", want, picture)
		}
	}
	if strings.Contains(picture, "updating in place") {
		t.Error("the legend has a state that the film does not have")
	}
}

func wellFormed(text string) error {
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		switch _, err := d.Token(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
