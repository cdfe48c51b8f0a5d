// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	validationerrors "github.com/operator-framework/api/pkg/validation/errors"
)

// kustomized is the input of the bundle.
var kustomized = sync.OnceValues(func() ([]byte, error) {
	build := exec.Command("go", "tool", "-modfile=go.tools.mod", "kustomize", "build", "config/manifests")
	build.Dir = filepath.Join("..", "..")
	build.Stderr = os.Stderr
	return build.Output()
})

// image is an image by its digest.
const image = "localhost:5000/rollset@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// bundles is the folder of the bundles. Tests share them, because the CRD makes one expensive, and change none.
var bundles string

func TestMain(m *testing.M) {
	var err error
	if bundles, err = os.MkdirTemp("", "bundles"); err != nil {
		panic(err)
	}
	m.Run()
	_ = os.RemoveAll(bundles)
}

// bundleOf returns the bundle of a release, which the first test writes that wants it, and reads its ClusterServiceVersion strictly.
func bundleOf(t *testing.T, version, replaces string) (folder string, csv *operatorsv1alpha1.ClusterServiceVersion) {
	t.Helper()
	folder = filepath.Join(bundles, version+"-"+replaces)
	if _, err := os.Stat(folder); err != nil {
		built, err := kustomized()
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"bundle", "-version", version, "-image", image, "-replaces", replaces, "-created", "2026-01-02T15:04:05Z", "-o", folder}
		if err := run(args, bytes.NewReader(built)); err != nil {
			t.Fatal(err)
		}
	}
	csv, err := readCSV(folder)
	if err != nil {
		t.Fatal(err)
	}
	return folder, csv
}

// TestValid runs OLM's own validators, except for the one that pulls images.
func TestValid(t *testing.T) {
	folder, _ := bundleOf(t, "0.1.0", "")
	bundle, err := manifests.GetBundleFromDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	validators := append(slices.Clone(validation.DefaultBundleValidators),
		validation.OperatorHubV2Validator, validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator,
		validation.GoodPracticesValidator, validation.ObjectValidator, validation.OperatorGroupValidator, validation.AlphaDeprecatedAPIsValidator)
	for _, result := range validators.Validate(bundle.ObjectsToValidate()...) {
		report(t, result)
	}
	for _, validator := range validators {
		for _, result := range validator.Validate(bundle, map[string]string{"k8s-version": "1.37"}) {
			report(t, result)
		}
	}
}

func report(t *testing.T, result validationerrors.ManifestResult) {
	t.Helper()
	for _, problem := range slices.Concat(result.Errors, result.Warnings) {
		// No subject has the role with this right until an administrator binds it.
		if strings.Contains(problem.Error(), "[policy] [poddisruptionbudgets]") && strings.Contains(problem.Error(), "could impact cluster stability") {
			continue
		}
		// A console offers examples of the stored version alone.
		if strings.Contains(problem.Error(), "v1alpha1, Kind=RollSet: provided API should have an example annotation") {
			continue
		}
		t.Errorf("%s: %v", result.Name, problem)
	}
}

// TestComplete checks what validators do not require.
func TestComplete(t *testing.T) {
	_, csv := bundleOf(t, "0.1.0", "")
	for _, mode := range csv.Spec.InstallModes {
		if !mode.Supported {
			t.Errorf("%s is not supported", mode.Type)
		}
	}
	owned := csv.Spec.CustomResourceDefinitions.Owned[0]
	for _, d := range owned.SpecDescriptors {
		if d.DisplayName == "" || d.Description == "" || len(d.XDescriptors) == 0 {
			t.Errorf("the field %s of the spec is not described: %v", d.Path, d)
		}
	}
	for _, d := range owned.StatusDescriptors {
		if d.DisplayName == "" || d.Description == "" {
			t.Errorf("the field %s of the status is not described: %v", d.Path, d)
		}
	}
	for _, path := range []string{"replicas", "template", "lifecycle", "updateStrategy.rollingUpdate.partition", "lifecycle.preDelete.labelsHandler"} {
		if !slices.ContainsFunc(owned.SpecDescriptors, func(d operatorsv1alpha1.SpecDescriptor) bool { return d.Path == path }) {
			t.Errorf("no descriptor for %s", path)
		}
	}
	install := csv.Spec.InstallStrategy.StrategySpec
	if len(install.DeploymentSpecs) != 1 || len(install.Permissions) != 1 || len(install.Permissions[0].Rules) == 0 ||
		len(install.ClusterPermissions) != 1 || len(install.ClusterPermissions[0].Rules) == 0 {
		t.Errorf("a Deployment or rights are missing: %v", install)
	}
	// What disconnected: "true" promises: every image is one of those that are listed, by its digest.
	for _, container := range install.DeploymentSpecs[0].Spec.Template.Spec.Containers {
		if len(csv.Spec.RelatedImages) != 1 || csv.Spec.RelatedImages[0].Image != container.Image || container.Image != image {
			t.Errorf("the image %s is not the one of the release: %v", container.Image, csv.Spec.RelatedImages)
		}
	}
}

// TestVariables checks that a Subscription can change whatever the manifests set by arguments.
func TestVariables(t *testing.T) {
	_, csv := bundleOf(t, "0.1.0", "")
	container := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
	if len(container.Args) > 0 {
		t.Errorf("a Subscription cannot change the arguments %q", container.Args)
	}
	set := map[string]string{}
	for _, env := range container.Env {
		set[env.Name] = env.Value
		if from := env.ValueFrom; from != nil && from.FieldRef != nil {
			set[env.Name] = from.FieldRef.FieldPath
		} else if from != nil {
			set[env.Name] = from.ResourceFieldRef.Resource
		}
	}
	want := map[string]string{
		"ROLLSET_LEADER_ELECT": "true", "ROLLSET_METRICS_BIND_ADDRESS": ":8443", "ROLLSET_HEALTH_PROBE_BIND_ADDRESS": ":8081",
		"ROLLSET_MEMORY_LIMIT": "limits.memory", "ROLLSET_NAMESPACES": "metadata.annotations['olm.targetNamespaces']",
	}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// TestScorecard asserts what the scorecard of the Operator SDK checks: each field of the spec of an example has a descriptor, so
// have the fields of the status, and the kind lists its resources and has a schema.
func TestScorecard(t *testing.T) {
	_, csv := bundleOf(t, "0.1.0", "")
	owned := csv.Spec.CustomResourceDefinitions.Owned[0]
	described := map[string]bool{}
	for _, d := range owned.SpecDescriptors {
		described[d.Path] = true
	}
	var examples []map[string]any
	if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		spec, _ := example["spec"].(map[string]any)
		if len(spec) == 0 {
			t.Errorf("an example has no spec: %v", example)
		}
		for key := range spec {
			if !described[key] {
				t.Errorf("no descriptor for %s, which an example sets", key)
			}
		}
	}
	if len(owned.Resources) == 0 || len(owned.StatusDescriptors) == 0 {
		t.Errorf("resources %v, descriptors of the status %v", owned.Resources, owned.StatusDescriptors)
	}
	if first, _ := examples[0]["metadata"].(map[string]any); len(examples) < 5 || first["name"] != "web" {
		t.Errorf("a console would begin with the example %v", first["name"])
	}
}

// TestCommunity asserts what the pipelines of catalogs ask for, beside the validators.
func TestCommunity(t *testing.T) {
	folder, csv := bundleOf(t, "0.1.0", "")
	for _, key := range []string{"capabilities", "categories", "containerImage", "createdAt", "description", "repository", "support", "alm-examples"} {
		if csv.Annotations[key] == "" {
			t.Errorf("the annotation %s is missing", key)
		}
	}
	if n := len(csv.Annotations["description"]); n > 135 {
		t.Errorf("the short description has %d characters, more than a catalog shows", n)
	}
	if _, err := time.Parse(time.RFC3339, csv.Annotations["createdAt"]); err != nil {
		t.Error(err)
	}
	// OLM copies the annotations into the pods' template, and the API server limits their size.
	size := 0
	for key, value := range csv.Annotations {
		size += len(key) + len(value)
	}
	if size > 128<<10 {
		t.Errorf("the annotations have %d bytes", size)
	}
	// Nothing that removes the operator removes the sets.
	text, err := os.ReadFile(filepath.Join(folder, "manifests", "apps.rollset.dev_rollsets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if policy := crdOf(t, text).Annotations["helm.sh/resource-policy"]; policy != "keep" {
		t.Errorf("OLM v1 would delete the CRD and every set with the operator: %q", policy)
	}
	role, err := os.ReadFile(filepath.Join(folder, "manifests", "rollset-disruption-role_clusterrole.yaml"))
	if err != nil || !strings.Contains(string(role), "nodes") || !strings.Contains(string(role), "poddisruptionbudgets") {
		t.Errorf("the rights for spec.disruption are not in the bundle: %v\n%s", err, role)
	}
	all, err := os.ReadFile(filepath.Join(folder, "manifests", "rollset.clusterserviceversion.yaml"))
	if err != nil || strings.Contains(string(all), "nodes\n") {
		t.Errorf("OLM would grant the rights for spec.disruption to everybody: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":             {want: "say bundle or catalog"},
		"a version with a v":  {args: []string{"bundle", "-version", "v1", "-image", image}, want: `VERSION "v1"`},
		"no image":            {args: []string{"bundle", "-version", "1.0.0"}, want: `the image "" has no digest`},
		"a tag":               {args: []string{"bundle", "-version", "1.0.0", "-image", "localhost:5000/rollset:v1"}, want: "has no digest"},
		"no registry":         {args: []string{"bundle", "-version", "1.0.0", "-image", "rollset" + digest}, want: "has no digest"},
		"an example":          {args: []string{"bundle", "-version", "1.0.0", "-image", "example.com/rollset" + digest}, want: "is an example"},
		"a part of one":       {args: []string{"bundle", "-version", "1.0.0", "-image", "registry.example.org:5000/rollset" + digest}, want: "is an example"},
		"a reserved domain":   {args: []string{"bundle", "-version", "1.0.0", "-image", "registry.example/rollset:v1" + digest}, want: "is an example"},
		"one that is after":   {args: []string{"bundle", "-version", "1.0.0", "-image", image, "-replaces", "1.0.0"}, want: "is not before VERSION"},
		"no version before":   {args: []string{"bundle", "-version", "1.0.0", "-image", image, "-replaces", "v0"}, want: `REPLACES "v0"`},
		"no time":             {args: []string{"bundle", "-version", "1.0.0", "-image", image}, want: "-created is missing"},
		"a catalog of nought": {args: []string{"catalog", "-version", "1.0.0", "-image", image, "-bundle", t.TempDir()}, want: "write it with make bundle first"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(c.args, strings.NewReader("")); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"
	if _, err := read(strings.NewReader(secret)); err == nil || !strings.Contains(err.Error(), "Secret x: a bundle has no place for it") {
		t.Errorf("a Secret is left out without a word: %v", err)
	}
	twice := strings.Repeat("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", 2)
	if _, err := read(strings.NewReader(twice)); err == nil || !strings.Contains(err.Error(), "there are two") {
		t.Errorf("two Deployments: %v", err)
	}
}
