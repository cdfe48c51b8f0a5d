// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"rollset.dev/rollset/internal/cli/session"
)

var update = flag.Bool("update", false, "Write what convert prints into testdata.")

// TestConvert converts each file of testdata that ends in .in.yaml, and compares with the file that ends in .out.yaml.
func TestConvert(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no input: %v", err)
	}
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, clocktesting.NewFakeClock(time.Time{}))
			if err := convert(s, []string{input}, strings.Contains(input, "lossy")); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(errOut.String()) {
				out.WriteString("# " + line)
			}
			got := out.String()
			path := strings.TrimSuffix(input, ".in.yaml") + ".out.yaml"
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConvertRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"nothing to convert": {
			"apiVersion: v1\nkind: Service\nmetadata: {name: a}\n",
			"holds no StatefulSet, Deployment or CloneSet",
		},
		"what has no counterpart": {
			"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {future: 1}\n",
			"no counterpart for statefulset/a spec.future: RollSet has no such field; --lossy leaves it out",
		},
		"images that are downloaded beforehand": {
			"apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {name: a}\nspec: {updateStrategy: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: 1}}}\n",
			"spec.updateStrategy.inPlaceUpdateStrategy.imagePreDownloadParallelism: images are not downloaded beforehand",
		},
		"an old version": {
			"apiVersion: apps/v1beta1\nkind: StatefulSet\nmetadata: {name: a}\n",
			"holds no StatefulSet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			s := session.New(genericiooptions.IOStreams{In: strings.NewReader(test.in), Out: &out, ErrOut: &errOut}, clocktesting.NewFakeClock(time.Time{}))
			err := convert(s, []string{"-"}, false)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want an error with %q, got %v", test.want, err)
			}
			if out.Len() > 0 {
				t.Errorf("it printed\n%s", &out)
			}
		})
	}
}
