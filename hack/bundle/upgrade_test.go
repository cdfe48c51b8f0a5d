// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/yaml"
)

// crdPath is the path of the CRD in the project, and in the source of a kept release.
const crdPath = "config/crd/bases/apps.rollset.dev_rollsets.yaml"

// advice says what to do when an upgrade from the last release would be refused.
const advice = `
OLM would refuse the upgrade from %s to this CRD. What a release has stays: rules, messages, defaults, limits, required fields.
  A new field: put its rules on itself, or on a new object around it, never on a parent that was released.
  A stricter rule: let a condition say it instead, or bring it with a new version of the API.
  No user runs %[1]s: keep this commit instead, with make keep-release REF=HEAD, and delete the file of %[1]s.`

// TestUpgradeOfTheCRD compares the CRD with the one of the last release as OLM v1 does before an upgrade, with its settings.
func TestUpgradeOfTheCRD(t *testing.T) {
	release, files := lastRelease(t)
	problems := refusals(t, crdOf(t, files[crdPath]), shippedCRD(t))
	for _, problem := range problems {
		t.Error(problem)
	}
	if len(problems) > 0 {
		t.Logf(advice, release)
	}
}

// TestWhatAnUpgradeMayChange shows that the comparison accepts what OLM v1 allows, and finds what it refuses.
func TestWhatAnUpgradeMayChange(t *testing.T) {
	crd := shippedCRD(t)
	for _, version := range crd.Spec.Versions { // without what is most of the CRD, and is not changed here
		delete(version.Schema.OpenAPIV3Schema.Properties["spec"].Properties, "template")
		delete(version.Schema.OpenAPIV3Schema.Properties["spec"].Properties, "volumeClaimTemplates")
	}
	rule := apiextensionsv1.ValidationRule{Rule: "true", Message: "must be true"}
	for name, c := range map[string]struct {
		change  func(spec *apiextensionsv1.JSONSchemaProps)
		refused string
	}{
		"nothing":       {change: func(*apiextensionsv1.JSONSchemaProps) {}},
		"a description": {change: func(s *apiextensionsv1.JSONSchemaProps) { s.Description = "new" }},
		"a new field with rules of its own": {change: func(s *apiextensionsv1.JSONSchemaProps) {
			s.Properties["new"] = apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64(3)), XValidations: []apiextensionsv1.ValidationRule{rule}}
		}},
		"a rule on a parent": {refused: "^.spec", change: func(s *apiextensionsv1.JSONSchemaProps) { s.XValidations = append(s.XValidations, rule) }},
		"a message":          {refused: "^.spec", change: func(s *apiextensionsv1.JSONSchemaProps) { s.XValidations[0].Message = "new" }},
		"a field less":       {refused: "minReadySeconds", change: func(s *apiextensionsv1.JSONSchemaProps) { delete(s.Properties, "minReadySeconds") }},
		"a new limit": {refused: "^.spec.replicas", change: func(s *apiextensionsv1.JSONSchemaProps) {
			replicas := s.Properties["replicas"]
			replicas.Maximum = new(float64(7))
			s.Properties["replicas"] = replicas
		}},
	} {
		t.Run(name, func(t *testing.T) {
			next := crd.DeepCopy()
			root := next.Spec.Versions[0].Schema.OpenAPIV3Schema
			spec := root.Properties["spec"]
			c.change(&spec)
			root.Properties["spec"] = spec
			problems := strings.Join(refusals(t, crd, next), "\n")
			if (problems != "") != (c.refused != "") || !strings.Contains(problems, c.refused) {
				t.Errorf("refused: %q, want %q", problems, c.refused)
			}
		})
	}
}

// refusals returns why OLM v1 would refuse to upgrade a CRD.
func refusals(t *testing.T, from, to *apiextensionsv1.CustomResourceDefinition) []string {
	t.Helper()
	r, err := runner.New(&config.Config{
		Conversion:           config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
		},
	}, runner.DefaultRegistry())
	if err != nil {
		t.Fatal(err)
	}
	results := r.Run(from, to)
	var problems []string
	for _, v := range results.CRDValidation {
		problems = append(problems, v.Errors...)
	}
	for _, version := range slices.Concat(results.SameVersionValidation, results.ServedVersionValidation) {
		for _, property := range version.PropertyComparisons {
			for _, comparison := range property.ComparisonResults {
				for _, problem := range comparison.Errors {
					problems = append(problems, fmt.Sprintf("%s: %s: %.300s", property.Property, comparison.Name, problem))
				}
			}
		}
	}
	return problems
}

// TestStoredSets checks every set that the tests of the last release stored against the new schema as OLM v0 does before an
// upgrade: without rules, defaults and ratcheting, and with the status. One that does not fit would leave the upgrade stuck.
func TestStoredSets(t *testing.T) {
	release, files := lastRelease(t)
	before, now := validator(t, crdOf(t, files[crdPath])), validator(t, shippedCRD(t))
	n, withStatus := 0, 0
	for line := range bytes.Lines(files["stored.jsonl"]) {
		var set map[string]any
		if err := json.Unmarshal(line, &set); err != nil {
			t.Fatal(err)
		}
		n++
		if status, _ := set["status"].(map[string]any); status["conditions"] != nil {
			withStatus++
		}
		if errs := validation.ValidateCustomResource(field.NewPath(""), set, before); len(errs) > 0 {
			t.Errorf("%s itself would not store %s: %v", release, line, errs)
		}
		if errs := validation.ValidateCustomResource(field.NewPath(""), set, now); len(errs) > 0 {
			t.Errorf("%s stored %.200s…: %v", release, line, errs)
		}
	}
	if n < 100 || withStatus < 50 {
		t.Errorf("%s stored only %d sets, %d with a status", release, n, withStatus)
	}
	if t.Failed() {
		t.Logf(advice, release)
	}
}

func validator(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) validation.SchemaValidator {
	t.Helper()
	var schema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
		t.Fatal(err)
	}
	v, _, err := validation.NewSchemaValidator(&schema)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func shippedCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", crdPath))
	if err != nil {
		t.Fatal(err)
	}
	return crdOf(t, text)
}

func crdOf(t *testing.T, text []byte) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// lastRelease returns the name and the files of the last release that is kept.
func lastRelease(t *testing.T) (name string, files map[string][]byte) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "test", "upgrade", "testdata", "*.tar.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no release is kept: %v", err)
	}
	version := func(path string) semver.Version {
		v, err := semver.ParseTolerant(strings.TrimSuffix(filepath.Base(path), ".tar.gz"))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return v
	}
	last := slices.MaxFunc(paths, func(a, b string) int { return version(a).Compare(version(b)) })
	packed, err := os.Open(last)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string][]byte{}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return strings.TrimSuffix(filepath.Base(last), ".tar.gz"), files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}
