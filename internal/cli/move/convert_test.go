// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package move

import (
	"bytes"
	"errors"
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

// TestConvert converts each file of testdata that ends in .in.yaml, and compares with the file that ends in .out.yaml. A local
// cluster does not know all kinds in the folder unserved.
func TestConvert(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	unserved, unservedErr := filepath.Glob("testdata/unserved/*.in.yaml")
	if err := errors.Join(err, unservedErr); err != nil || len(inputs) == 0 || len(unserved) == 0 {
		t.Fatalf("no input: %v", err)
	}
	inputs = append(inputs, unserved...)
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
		"what has no counterpart": {
			"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {future: 1}\n",
			"no counterpart for statefulset/a spec.future: RollSet has no such field; --lossy leaves it out",
		},
		"images that are downloaded beforehand": {
			"apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {name: a}\nspec: {updateStrategy: {inPlaceUpdateStrategy: {imagePreDownloadParallelism: 1}}}\n",
			"spec.updateStrategy.inPlaceUpdateStrategy.imagePreDownloadParallelism: images are not downloaded beforehand",
		},
		"a type of another version": {
			"apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {name: a}\nspec: {updateStrategy: {type: RollingUpdate}}\n",
			"spec.updateStrategy.type: RollingUpdate: CloneSet v1alpha1 has no such type",
		},
		"an owner": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: b, uid: c}]}\n",
			"deployment/a metadata.ownerReferences: the owner does not know RollSets",
		},
		"a finalizer": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, finalizers: [example.com/f]}\n",
			"deployment/a metadata.finalizers: the program that removes them does not know RollSets",
		},
		"a name with a dot": {
			"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a.b}\n",
			"statefulset/a.b: the name of a RollSet begins its pods' hostnames",
		},
		"a long name": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + strings.Repeat("a", 53) + "}\n",
			"at most 52 characters",
		},
		"another object that refers to it": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n---\n" +
				"apiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {name: c}\nspec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}\n",
			"canary/c spec.targetRef: it refers to deployment/a, which becomes a RollSet",
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

// TestConvertPrintsOthers converts what is no workload that becomes a RollSet: it is printed, since convert may be a post-renderer.
func TestConvertPrintsOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, warning string }{
		"no workload":             {"apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n", ""},
		"an old version":          {"apiVersion: apps/v1beta1\nkind: StatefulSet\nmetadata:\n  name: a\n", "warning: printed as it is: statefulset/a of apps/v1beta1: only apps/v1 is converted\n"},
		"a kind of another group": {"apiVersion: apps.kruise.io/v1beta1\nkind: StatefulSet\nmetadata:\n  name: a\n", "warning: printed as it is: statefulset/a of apps.kruise.io/v1beta1: only apps/v1 is converted\n"},
		"nothing":                 {"", ""},
		"a comment":               {"# nothing\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			s := session.New(genericiooptions.IOStreams{In: strings.NewReader(test.in), Out: &out, ErrOut: &errOut}, clocktesting.NewFakeClock(time.Time{}))
			if err := convert(s, []string{"-"}, false); err != nil {
				t.Fatal(err)
			}
			want := test.in
			if strings.HasPrefix(want, "#") {
				want = ""
			}
			if out.String() != want || errOut.String() != test.warning {
				t.Errorf("it printed\n%s\nand\n%s", &out, &errOut)
			}
		})
	}
}
