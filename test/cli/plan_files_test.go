// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
)

// webManifest is a set as a user writes it, without a namespace and without defaults.
func webManifest(replicas int, image, more string) string {
	return fmt.Sprintf(`apiVersion: apps.rollset.dev/v1beta1
kind: RollSet
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: %q}]}
%s`, replicas, image, more)
}

// TestPlanOfFiles plans files of sets that were applied in every way: by kubectl apply, on the server, and not at all. A field
// that the file does not have any longer is removed where the tool would remove it.
func TestPlanOfFiles(t *testing.T) {
	t.Parallel()
	for name, tool := range tools() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			contains(t, u.try(t, webManifest(3, "nginx:1.28", ""), "plan", "-f", "-").out, "web: scale (spec.replicas)", "create 3 pods")
			limited := webManifest(3, "nginx:1.28", "  minReadySeconds: 1\n")
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(limited), object); err != nil {
				t.Fatal(err)
			}
			tool.sync(t, u, object.Object)
			contains(t, u.run(t, "status", "web", longest()), "3 of 3 pods")
			generation := u.get(t, "web").Generation

			const path = "web.yaml" // relative: kubectl's -f separates files by commas
			ways := [][]string{{"-f", path}, {"web", "-f", path, "-o", "wide"}, {"-f", "-"}, {"-f", "/dev/stdin"}}
			for i, c := range []struct{ text, want string }{
				{limited, "web: nothing\n"},
				{webManifest(3, "nginx:1.28", ""), "web: nothing (spec.minReadySeconds)"},
				{webManifest(3, "nginx:1.29", "  minReadySeconds: 1\n"), "web: recreate (spec.template.spec.containers[app].image)"},
				{webManifest(5, "nginx:1.28", "  minReadySeconds: 1\n"), "web: scale (spec.replicas)"},
				{"# a comment\n---\n" + limited + "---\n" + service + "\n", "web: nothing\n"},
			} {
				if err := os.WriteFile(filepath.Join(u.dir, path), []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
				for w, way := range ways {
					// How a file is read depends neither on the text nor on the tool.
					if testing.Short() && w != i%len(ways) && (name != "Flux" || i < len(ways)) {
						continue
					}
					if r := u.try(t, c.text, append([]string{"plan"}, way...)...); r.code != 0 || !strings.Contains(r.out, c.want) {
						t.Errorf("plan %v: exit code %d, want %q\n%s%s", way, r.code, c.want, r.out, r.err)
					}
				}
			}
			if now := u.get(t, "web"); now.Generation != generation {
				t.Errorf("plans changed the set")
			}
			u.fails(t, 1, []string{"plan", "-f", path, "--namespace=elsewhere"}, `"elsewhere" not found`)
		})
	}
}

const service = `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: None}`

// TestPlanConflictsWithNobody plans while the manager writes the status of the set all the time.
func TestPlanConflictsWithNobody(t *testing.T) {
	t.Parallel()
	u := newUser(t).here()
	u.newSet(t, "web", func(set *v1beta1.RollSet) {
		set.Spec.Replicas = new(int32(16))
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt(2))
	})
	u.run(t, "set", "image", "web", "app=nginx:1.29")
	planned := 0
	for range 10 {
		contains(t, u.run(t, "plan", "web", "--set-image", "app=nginx:1.30"), "web: recreate")
		if set := u.get(t, "web"); set.Status.UpdatedReplicas < 16 {
			planned++
		}
	}
	if planned == 0 {
		t.Error("the rollout was over before it was planned")
	}
	u.fails(t, 1, []string{"plan", "web", "--replicas=-2"}, "--replicas is -2; it must be 0 or more")
	u.fails(t, 1, []string{"plan", "web", "--replicas=2147483647"}, "the plan is too large: rollset web has up to 2147483647 pods")
}
