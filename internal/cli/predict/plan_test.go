// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"rollset.dev/rollset/internal/cli/session"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// manifest returns a set of some pods with an image.
func manifest(name, replicas, image string) string {
	return "apiVersion: apps.rollset.dev/v1beta1\nkind: RollSet\nmetadata: {name: " + name + "}\nspec:\n  replicas: " + replicas +
		"\n  selector: {matchLabels: {app: a}}\n  template:\n    metadata: {labels: {app: a}}\n    spec:\n      containers:\n      - {name: app, image: \"" + image + "\"}\n"
}

// files writes texts into files, and returns their names.
func files(t *testing.T, texts ...string) []string {
	t.Helper()
	var names []string
	for i, text := range texts {
		name := filepath.Join(t.TempDir(), string(rune('a'+i))+".yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// offline runs a plan of files, with more arguments.
func offline(t *testing.T, texts []string, args ...string) (out string, err error) {
	t.Helper()
	stdout := &bytes.Buffer{}
	s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: stdout, ErrOut: io.Discard}, clocktesting.NewFakeClock(testTime))
	cmd := NewPlan(s, "v1.0.0")
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	args = append([]string{"--offline"}, args...)
	for _, name := range files(t, texts...) {
		args = append(args, "-f", name)
	}
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), err
}

func TestOfflinePlans(t *testing.T) {
	t.Parallel()
	web := manifest("web", "3", "web:1")
	for name, test := range map[string]struct {
		texts, args []string
		want        []string
	}{
		"a new image":             {[]string{web, manifest("web", "3", "web:2")}, nil, []string{"default/web: recreate (spec.template.spec.containers[app].image)", "2 of 3 pods"}},
		"nothing":                 {[]string{web, web}, nil, []string{"default/web: nothing", "The controller will write nothing."}},
		"a new set":               {[]string{web}, nil, []string{"default/web: scale (spec.replicas)", "create 3 pods"}},
		"an image by a flag":      {[]string{web}, []string{"--set-image", "app=web:2"}, []string{"default/web: recreate"}},
		"more pods by a flag":     {[]string{web}, []string{"--replicas", "5"}, []string{"default/web: scale (spec.replicas)", "create 2 pods"}},
		"a merge patch":           {[]string{web}, []string{"--patch", "spec: {replicas: 1}"}, []string{"default/web: scale", "delete 2 pods"}},
		"a JSON patch":            {[]string{web}, []string{"--patch", `[{"op": "replace", "path": "/spec/replicas", "value": 1}]`}, []string{"delete 2 pods"}},
		"each write":              {[]string{web, manifest("web", "3", "web:2")}, []string{"-o", "wide"}, []string{"delete pods web-", "create pods web-"}},
		"a partition of everyone": {[]string{web, manifest("web", "3", "web:2")}, []string{"--partition", "100%"}, []string{"Lowest availability:", "3 of 3 pods"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := offline(t, test.texts, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

// pods is the number of pods in the plan of TestPlanOfManyPods.
var pods = flag.Int("pods", 1000, "how many pods the largest plan is about; make bench-plugin has 10,000")

// memoryOf is how much memory a plan may use for each pod: a gibibyte for 10,000.
const memoryOf = 1 << 30 / 10000

// TestPlanOfManyPods bounds the memory that a plan of many pods uses: everything that the process has allocated by then.
func TestPlanOfManyPods(t *testing.T) {
	limited := func(image string) string {
		return manifest("web", strconv.Itoa(*pods), image) + "  updateStrategy: {rollingUpdate: {maxUnavailable: 10%}}\n"
	}
	out, err := offline(t, []string{limited("web:1"), limited("web:2")})
	if err != nil || !strings.Contains(out, "default/web: recreate") {
		t.Fatalf("%v\n%s", err, out)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("a plan of %d pods: %d MiB", *pods, memory.Sys>>20)
	if limit := uint64(max(*pods, 3000)) * memoryOf; memory.Sys > limit {
		t.Errorf("a plan of %d pods takes %d MiB, more than %d", *pods, memory.Sys>>20, limit>>20)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	web, other := manifest("web", "3", "web:1"), manifest("web", "3", "web:2")
	for name, test := range map[string]struct {
		texts []string
		want  int
	}{"nothing": {[]string{web, web}, 0}, "something": {[]string{web, other}, exitChanges}} {
		_, err := offline(t, test.texts, "--detailed-exitcode")
		code := 0
		if exit, ok := errors.AsType[*session.ExitError](err); ok {
			code = exit.Code
		} else if err != nil {
			t.Fatal(err)
		}
		if code != test.want {
			t.Errorf("%s: exit code %d, want %d", name, code, test.want)
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	texts := []string{manifest("web", "3", "web:1"), manifest("web", "3", "web:2")}
	out, err := offline(t, texts, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var plan map[string]any
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"set", "class", "field", "writes", "lowestAvailable", "floor", "mostPods", "seconds", "ifBroken", "cannotKnow"} {
		if plan[field] == nil {
			t.Errorf("the JSON has no %s:\n%s", field, out)
		}
	}
	if out, err = offline(t, texts, "-o", "svg"); err != nil || xml.Unmarshal([]byte(out), new(struct{})) != nil {
		t.Errorf("the picture is no XML: %v\n%.200s", err, out)
	}
	if out, err = offline(t, texts, "-o", "html"); err != nil || !strings.HasPrefix(out, "<!doctype html>") || strings.Contains(out, "<script") {
		t.Errorf("the page is none, or has a script: %v\n%.200s", err, out)
	}
}

// TestStar gives all containers an image, and no init containers, as set image does.
func TestStar(t *testing.T) {
	t.Parallel()
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init", Image: "i"}},
		Containers:     []corev1.Container{{Name: "app", Image: "a"}, {Name: "side", Image: "s"}},
	}
	if err := setImage(spec, "*=x"); err != nil || spec.InitContainers[0].Image != "i" || spec.Containers[0].Image != "x" || spec.Containers[1].Image != "x" {
		t.Errorf("%v, %+v", err, spec)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	web := manifest("web", "3", "web:1")
	for name, test := range map[string]struct {
		texts, args []string
		want        string
	}{
		"no file":                    {nil, nil, "give -f OLD -f NEW"},
		"three files":                {[]string{web, web, web}, nil, "3 RollSets; --offline takes"},
		"two sets":                   {[]string{web, manifest("db", "3", "db:1")}, nil, "the files are about two sets, web and db"},
		"a name":                     {[]string{web}, []string{"web"}, "--offline asks no cluster for web"},
		"a revision":                 {[]string{web}, []string{"--to-revision=2"}, "--offline knows no revisions"},
		"a field that is not":        {[]string{strings.Replace(web, "replicas:", "replica:", 1)}, nil, `unknown field "spec.replica"`},
		"pods below 0":               {[]string{web}, []string{"--replicas", "-2"}, "--replicas is -2; it must be 0 or more"},
		"pods below 0 in a file":     {[]string{web, manifest("web", "-2", "web:1")}, nil, "spec.replicas is -2; it must be 0 or more"},
		"a partition below 0":        {[]string{web}, []string{"--partition", "-1"}, `--partition: "-1" is no partition`},
		"a partition above 100%":     {[]string{web, web + "  updateStrategy: {rollingUpdate: {partition: 101%}}\n"}, nil, "rollingUpdate.partition is 101%"},
		"a revision below 1":         {[]string{web}, []string{"--to-revision", "-4"}, "--to-revision is -4; revisions are counted from 1"},
		"the revision 0":             {[]string{web}, []string{"--to-revision", "0"}, "--to-revision is 0; revisions are counted from 1"},
		"too many pods":              {[]string{web}, []string{"--replicas", "2147483647"}, "the plan is too large: rollset web has up to 2147483647 pods"},
		"too many pods in a file":    {[]string{manifest("web", "20001", "web:1")}, nil, "the plan is too large"},
		"another kind":               {[]string{web, "apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata: {name: web}\n"}, nil, "holds no RollSet, but CloneSet web (apps.kruise.io/v1alpha1)"},
		"a format that is not":       {[]string{web}, []string{"-o", "png"}, "-o png is no output format; give wide, json, svg or html"},
		"a container that is not":    {[]string{web}, []string{"--set-image", "nosuch=a"}, "the template has no container nosuch; it has app"},
		"an image without container": {[]string{web}, []string{"--set-image", "web:2"}, "give CONTAINER=IMAGE"},
		"a patch that is none":       {[]string{web}, []string{"--patch", "a: b: c"}, "--patch is neither JSON nor YAML"},
		"a patch of what is not":     {[]string{web}, []string{"--patch", "spec: {nosuch: 1}"}, `unknown field "spec.nosuch"`},
		"a JSON patch of nothing":    {[]string{web}, []string{"--patch", `[{"op": "remove", "path": "/spec/nosuch"}]`}, "apply the patch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := offline(t, test.texts, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want an error with %q, got %v\n%s", test.want, err, out)
			}
			if out != "" {
				t.Errorf("it prints half a plan:\n%s", out)
			}
		})
	}
}
