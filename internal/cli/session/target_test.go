// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newSession returns a session with a standard input, in the namespace "here".
func newSession(t *testing.T, stdin string) *Session {
	t.Helper()
	streams := genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	s := New(streams, clocktesting.NewFakeClock(testTime))
	*s.flags.Namespace = "here"
	return s
}

func TestTargets(t *testing.T) {
	t.Parallel()
	const (
		web   = "apiVersion: apps.rollset.dev/v1beta1\nkind: RollSet\nmetadata: {name: web}\n"
		db    = "apiVersion: apps.rollset.dev/v1beta1\nkind: RollSet\nmetadata: {name: db, namespace: there}\n"
		other = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
	)
	for name, test := range map[string]struct {
		args    []string
		file    string
		stdin   string
		want    []client.ObjectKey
		wantErr string
	}{
		"a name":                       {args: []string{"web"}, want: []client.ObjectKey{{Namespace: "here", Name: "web"}}},
		"a kind and a name":            {args: []string{"rls/web"}, want: []client.ObjectKey{{Namespace: "here", Name: "web"}}},
		"a kind beside a name":         {args: []string{"rollset", "web"}, want: []client.ObjectKey{{Namespace: "here", Name: "web"}}},
		"a kind with its group":        {args: []string{"rollsets.apps.rollset.dev/web"}, want: []client.ObjectKey{{Namespace: "here", Name: "web"}}},
		"several names":                {args: []string{"web", "db"}, want: []client.ObjectKey{{Namespace: "here", Name: "web"}, {Namespace: "here", Name: "db"}}},
		"another kind":                 {args: []string{"deployment/web"}, wantErr: "deployment/web is no RollSet"},
		"a kind without a name":        {args: []string{"rls/"}, wantErr: `"rls/" names no RollSet`},
		"a file":                       {file: web, want: []client.ObjectKey{{Namespace: "here", Name: "web"}}},
		"a file with other kinds":      {file: other + "---\n" + web, want: []client.ObjectKey{{Namespace: "here", Name: "web"}}},
		"a file with two sets":         {file: web + "---\n" + db, want: []client.ObjectKey{{Namespace: "here", Name: "web"}, {Namespace: "there", Name: "db"}}},
		"a file without a set":         {file: other, wantErr: "holds no RollSet"},
		"a file that is no YAML":       {file: "a: b: c", wantErr: "read "},
		"a file and a name":            {file: web, args: []string{"web"}, wantErr: "both a name (web) and -f are given"},
		"standard input":               {stdin: db, want: []client.ObjectKey{{Namespace: "there", Name: "db"}}},
		"standard input without a set": {stdin: other, wantErr: "holds no RollSet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := &Target{}
			if test.stdin != "" {
				target.Filenames = []string{"-"}
			}
			if test.file != "" {
				path := filepath.Join(t.TempDir(), "file.yaml")
				if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
					t.Fatal(err)
				}
				target.Filenames = []string{path}
			}
			got, err := target.Keys(newSession(t, test.stdin), test.args)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("want an error with %q, got %v", test.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTagOf(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"registry:5000/rollset":                    "",
		"registry:5000/rollset:v1.2.3":             "v1.2.3",
		"registry/rollset:v1.2.3@sha256:0123":      "v1.2.3",
		"registry/rollset@sha256:0123":             "",
		"controller:latest":                        "latest",
		"registry.example.com/a/b/rollset:v0.1-rc": "v0.1-rc",
	} {
		if got := tagOf(image); got != want {
			t.Errorf("tagOf(%q) = %q, want %q", image, got, want)
		}
	}
}
