// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package kustomize tests that, with config/components/kustomize, kustomize does to a RollSet what it does to a Deployment
// and to a StatefulSet.
package kustomize

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"rollset.dev/rollset/internal/testing/testbed/assets"
)

// transformation is one request of an overlay.
type transformation struct {
	overlay string // its kustomization, without resources and components
	patch   string // a file patch.yaml beside it
	// unlike are parts of the overlay's output that the base does not have, so that nothing passes by doing nothing.
	unlike []string
}

// onAll applies the patch to each of the three kinds.
const onAll = `
patches:
- {path: patch.yaml, target: {kind: Deployment}}
- {path: patch.yaml, target: {kind: StatefulSet}}
- {path: patch.yaml, target: {kind: RollSet}}
`

func strategic(template string) string {
	return "apiVersion: any\nkind: any\nmetadata: {name: any}\nspec:\n  template:\n    spec:\n" + template
}

// transformations returns requests. Those that touch different fields are together, because each build costs a process.
func transformations() map[string]transformation {
	return map[string]transformation{
		"images, replicas, a namespace and annotations are set": {
			overlay: "images: [{name: nginx, newTag: '2'}]\nreplicas: [{name: web, count: 7}]\nnamespace: elsewhere\ncommonAnnotations: {team: shop}",
			unlike:  []string{"nginx:2", "replicas:7", "namespace:elsewhere", "team:shop"},
		},
		"names of generated ConfigMaps and Secrets are referred to": {
			overlay: "configMapGenerator: [{name: config, literals: [b=1]}]\nsecretGenerator: [{name: secret, literals: [c=1]}, {name: pull, literals: [d=1]}]",
			unlike:  []string{"name:config-"},
		},
		"prefixes and suffixes":  {overlay: "namePrefix: a-\nnameSuffix: -z", unlike: []string{"name:a-web-z"}},
		"labels of selectors":    {overlay: "labels: [{includeSelectors: true, pairs: {tier: front}}]", unlike: []string{"tier:front"}},
		"labels of templates":    {overlay: "labels: [{includeTemplates: true, pairs: {tier: front}}]", unlike: []string{"tier:front"}},
		"labels of objects only": {overlay: "labels: [{pairs: {tier: front}}]", unlike: []string{"tier:front"}},
		"a patch adds and changes": {overlay: onAll, patch: strategic(`
      containers:
      - name: web
        env: [{name: D, value: added}, {name: A, value: changed}]
        ports: [{containerPort: 443, protocol: UDP, name: one-of-two-equal}]
        volumeMounts: [{mountPath: /config, name: mounted}]
      - {name: third, image: third}
      - {name: absent, env: [{name: D}]}
      initContainers: [{name: init, image: first}]
      volumes: [{name: secret, emptyDir: {sizeLimit: 7Mi}}]
      tolerations: [{key: spot, operator: Exists}]
      imagePullSecrets: [{name: second}]
      topologySpreadConstraints: [{topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, maxSkew: 3}]
`), unlike: []string{
			"value:added", "value:changed", "one-of-two-equal", "mounted", "third", "absent", "first", "7Mi", "spot", "second", "maxSkew:3",
		}},
		"a patch deletes a container":     {overlay: onAll, patch: strategic("      containers: [{name: sidecar, $patch: delete}, {name: web, image: left}]"), unlike: []string{"left"}},
		"a patch replaces the containers": {overlay: onAll, patch: strategic("      containers: [{name: only, image: only}, {$patch: replace}]"), unlike: []string{"only"}},
		"a JSON patch":                    {overlay: onAll, patch: "- {op: replace, path: /spec/template/spec/containers/1/image, value: changed}", unlike: []string{"changed"}},
	}
}

// TestSameAsBuiltIn compares what every transformer makes of a Deployment, a StatefulSet and a RollSet with the same pod
// template.
func TestSameAsBuiltIn(t *testing.T) {
	for name, tr := range transformations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, tr, build(t, folders{
				"base":    "resources: [objects.yaml]",
				"overlay": "resources: [../base]\ncomponents: [COMPONENT]\n" + tr.overlay,
			}, tr.patch))
		})
	}
}

// TestListedInTheBase lists the component where the manifests are, once for all overlays.
func TestListedInTheBase(t *testing.T) {
	for _, name := range []string{
		"images, replicas, a namespace and annotations are set", "names of generated ConfigMaps and Secrets are referred to",
		"prefixes and suffixes", "labels of selectors", "a patch adds and changes", "a patch deletes a container",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := transformations()[name]
			compare(t, tr, build(t, folders{
				"base":    "resources: [objects.yaml]\ncomponents: [COMPONENT]",
				"overlay": "resources: [../base]\n" + tr.overlay,
			}, tr.patch))
		})
	}
}

// compare fails where the three kinds differ.
func compare(t *testing.T, tr transformation, built string) {
	t.Helper()
	objects := decode(t, built)
	for _, part := range tr.unlike {
		if spec := fmt.Sprint(objects["RollSet"].Object); !strings.Contains(spec, part) {
			t.Errorf("there is no %q in %s", part, spec)
		}
	}
	deployment, statefulSet, set := parts(t, objects["Deployment"]), parts(t, objects["StatefulSet"]), parts(t, objects["RollSet"])
	if diff := cmp.Diff(statefulSet, set); diff != "" {
		t.Errorf("not as of a StatefulSet (-StatefulSet +RollSet):\n%s", diff)
	}
	maps.DeleteFunc(set, func(key string, _ any) bool { return key == "serviceName" || key == "volumeClaimTemplates" })
	if diff := cmp.Diff(deployment, set); diff != "" {
		t.Errorf("not as of a Deployment (-Deployment +RollSet):\n%s", diff)
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "RollSet"} {
		target, _, err := unstructured.NestedString(objects["HorizontalPodAutoscaler "+kind].Object, "spec", "scaleTargetRef", "name")
		if want := objects[kind].GetName(); err != nil || target != want {
			t.Errorf("the autoscaler of the %s scales %q, not %q: %v", kind, target, want, err)
		}
	}
}

// parts returns what transformers change in an object: its metadata and its spec.
func parts(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	if object == nil {
		t.Fatal("the output lacks one of the three kinds")
	}
	found, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	found["metadata"] = object.Object["metadata"]
	return found
}

// TestWithout holds what docs/how-to/kustomize.md says of a kustomization without the component.
func TestWithout(t *testing.T) {
	all := transformations()
	overlay := func(tr transformation) folders {
		return folders{"base": "resources: [objects.yaml]", "overlay": "resources: [../base]\n" + tr.overlay}
	}
	if _, err := tryBuild(t, overlay(transformation{overlay: "replicas: [{name: only, count: 7}]"}), ""); err == nil ||
		!strings.Contains(err.Error(), "does not match a config with the following GVK") {
		t.Errorf("replicas are set, or refused in other words: %v", err)
	}
	for name, untouched := range map[string]string{
		"prefixes and suffixes": "serviceAccountName:web ",
		"labels of selectors":   "matchLabels:map[app:web]",
		"labels of templates":   "labels:map[app:web]",
		"names of generated ConfigMaps and Secrets are referred to": "configMapKeyRef:map[key:b name:config]",
	} {
		set := decode(t, build(t, overlay(all[name]), ""))["RollSet"]
		if !strings.Contains(fmt.Sprint(set.Object), untouched) {
			t.Errorf("%s: no %q in %v", name, untouched, set.Object)
		}
	}
	patched := all["a patch adds and changes"]
	set := decode(t, build(t, overlay(patched), patched.patch))["RollSet"]
	if spec := fmt.Sprint(set.Object); strings.Contains(spec, "nginx") || strings.Contains(spec, "sidecar") {
		t.Errorf("the list of containers was merged: %s", spec)
	}
}

// folders are kustomizations, by the name of their folder.
type folders map[string]string

// build builds the folder overlay.
func build(t *testing.T, kustomizations folders, patch string) string {
	t.Helper()
	built, err := tryBuild(t, kustomizations, patch)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func tryBuild(t *testing.T, kustomizations folders, patch string) (string, error) {
	t.Helper()
	root, err := assets.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for folder, text := range kustomizations {
		path := filepath.Join(dir, folder)
		component, err := filepath.Rel(path, filepath.Join(root, "config/components/kustomize"))
		if err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, "COMPONENT", component)
		for name, content := range map[string]string{"kustomization.yaml": text, "objects.yaml": base(), "patch.yaml": patch} {
			err := errors.Join(os.MkdirAll(path, 0o750), os.WriteFile(filepath.Join(path, name), []byte(content), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	program, err := kustomizeProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "build", filepath.Join(dir, "overlay"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kustomize build: %w\n%s", err, stderr.Bytes())
	}
	return stdout.String(), nil
}

// kustomizeProgram is the pinned kustomize.
var kustomizeProgram = sync.OnceValues(func() (string, error) { return assets.Tool(".", "-modfile=go.tools.mod", "kustomize") })

// decode returns the objects of a manifest by kind; autoscalers by the kind that they scale, too.
func decode(t *testing.T, manifest string) map[string]*unstructured.Unstructured {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		u := &unstructured.Unstructured{}
		switch err := documents.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			t.Fatal(err)
		}
		key := u.GetKind()
		if kind, ok, _ := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "kind"); ok {
			key += " " + kind
		}
		found[key] = u
	}
}
