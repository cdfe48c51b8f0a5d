// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	validationerrors "github.com/operator-framework/api/pkg/validation/errors"
	"sigs.k8s.io/yaml"
)

// kustomized is the input of the bundle.
var kustomized = sync.OnceValues(func() ([]byte, error) {
	build := exec.Command("go", "tool", "-modfile=go.tools.mod", "kustomize", "build", "config/manifests")
	build.Dir = filepath.Join("..", "..")
	build.Stderr = os.Stderr
	return build.Output()
})

// bundleOf writes the bundle of a release and reads its ClusterServiceVersion strictly.
func bundleOf(t *testing.T, version, replaces string) (folder string, csv *operatorsv1alpha1.ClusterServiceVersion) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "bundle")
	r := release{image: "registry.example/rollset:v" + version, replaces: replaces}
	if err := r.setVersion(version); err != nil {
		t.Fatal(err)
	}
	built, err := kustomized()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.write(bytes.NewReader(built), folder); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "manifests", "rollset.clusterserviceversion.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	csv = &operatorsv1alpha1.ClusterServiceVersion{}
	if err := yaml.UnmarshalStrict(text, csv); err != nil {
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
		t.Errorf("%s: %v", result.Name, problem)
	}
}

// TestUpgrade checks from which versions OLM upgrades to a new one.
func TestUpgrade(t *testing.T) {
	_, first := bundleOf(t, "0.1.0", "")
	if first.Spec.Replaces != "" {
		t.Errorf("the first version replaces %s", first.Spec.Replaces)
	}
	_, next := bundleOf(t, "0.3.0", "0.2.0")
	if next.Name != "rollset.v0.3.0" || next.Spec.Replaces != "rollset.v0.2.0" || !next.Spec.Version.EQ(semver.MustParse("0.3.0")) {
		t.Errorf("%s of version %s replaces %s", next.Name, next.Spec.Version, next.Spec.Replaces)
	}
	skips, err := semver.ParseRange(next.Annotations["olm.skipRange"])
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]bool{"0.1.0": true, "0.2.9": true, "0.3.0": false, "1.0.0": false} {
		if skips(semver.MustParse(version)) != want {
			t.Errorf("upgrades from %s: %v, want %v", version, !want, want)
		}
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
	for _, path := range []string{"replicas", "template", "updateStrategy.rollingUpdate.partition", "lifecycle.preDelete.labelsHandler"} {
		if !slices.ContainsFunc(owned.SpecDescriptors, func(d operatorsv1alpha1.SpecDescriptor) bool { return d.Path == path }) {
			t.Errorf("no descriptor for %s", path)
		}
	}
	install := csv.Spec.InstallStrategy.StrategySpec
	if len(install.DeploymentSpecs) != 1 || !strings.HasPrefix(install.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image, "registry.example/") {
		t.Errorf("not the image of the release: %v", install.DeploymentSpecs)
	}
	if len(install.Permissions) != 1 || len(install.Permissions[0].Rules) == 0 || len(install.ClusterPermissions) != 1 || len(install.ClusterPermissions[0].Rules) == 0 {
		t.Errorf("rights are missing: %v, %v", install.Permissions, install.ClusterPermissions)
	}
}

func TestRefusals(t *testing.T) {
	r := release{image: "registry.example/rollset"}
	if err := r.setVersion("v1"); err == nil {
		t.Error("v1 is taken for a version")
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
