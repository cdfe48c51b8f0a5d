// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"sigs.k8s.io/yaml"
)

// bundleImage is the image of a bundle.
const bundleImage = "localhost:5000/rollset-bundle@sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

// add adds a version to the catalog before, and returns the new one.
func add(t *testing.T, before, version, replaces string) (catalog string, err error) {
	t.Helper()
	bundle, _ := bundleOf(t, version, replaces)
	folder := filepath.Join(t.TempDir(), "catalog")
	return filepath.Join(folder, "configs", "rollset", "catalog.yaml"), run([]string{
		"catalog", "-version", version, "-image", bundleImage, "-replaces", replaces, "-bundle", bundle, "-before", before, "-o", folder,
	}, strings.NewReader(""))
}

// upgrades returns what OLM would upgrade a version to in a catalog, and whether the catalog is valid.
func upgrades(t *testing.T, path string, from semver.Version) []string {
	t.Helper()
	catalog, err := declcfg.LoadFS(t.Context(), os.DirFS(filepath.Dir(path)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := declcfg.ConvertToModel(*catalog); err != nil {
		t.Fatal(err)
	}
	var to []string
	for _, e := range catalog.Channels[0].Entries {
		skips, err := semver.ParseRange(e.SkipRange)
		if err != nil {
			t.Fatal(err)
		}
		if e.Replaces == name(from) || slices.Contains(e.Skips, name(from)) || skips(from) {
			to = append(to, e.Name)
		}
	}
	return to
}

// TestCatalog makes the catalogs of three releases. The last one must not skip the one before.
func TestCatalog(t *testing.T) {
	first, err := add(t, "", "0.1.0", "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := add(t, first, "0.2.0", "")
	if err != nil {
		t.Fatal(err)
	}
	third, err := add(t, second, "0.3.0", "0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string][]string{
		"0.1.0": {"rollset.v0.2.0"}, "0.1.9": {"rollset.v0.2.0"}, "0.2.0": {"rollset.v0.3.0"}, "0.2.9": {"rollset.v0.3.0"},
		"0.3.0": nil, "1.0.0": nil,
	} {
		if diff := cmp.Diff(want, upgrades(t, third, semver.MustParse(version))); diff != "" {
			t.Errorf("upgrades of %s (-want +got):\n%s", version, diff)
		}
	}
	if got := upgrades(t, second, semver.MustParse("0.0.1")); !slices.Contains(got, "rollset.v0.2.0") {
		t.Errorf("0.0.1 cannot skip to 0.2.0: %v", got)
	}

	again, err := add(t, third, "0.3.0", "0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(content(t, third), content(t, again)); diff != "" {
		t.Errorf("the same version again (-first +second):\n%s", diff)
	}
	for want, c := range map[string][3]string{
		"would not be the newest":               {third, "0.2.1", ""},
		"the newest of the catalog before is":   {third, "0.4.0", "0.2.0"},
		"read the catalog before":               {"/no/such/file", "0.4.0", "0.2.0"},
		"has no channel candidate of rollset":   {other(t), "0.4.0", "0.2.0"},
		"the entry web.v1 of the catalog befor": {strange(t, third), "0.4.0", "0.2.0"},
	} {
		if _, err := add(t, c[0], c[1], c[2]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestCatalogOfOne makes a catalog that knows no version before: what is installed is upgraded all the same.
func TestCatalogOfOne(t *testing.T) {
	catalog, err := add(t, "", "0.3.0", "0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string][]string{"0.1.0": nil, "0.2.0": {"rollset.v0.3.0"}} {
		if diff := cmp.Diff(want, upgrades(t, catalog, semver.MustParse(version))); diff != "" {
			t.Errorf("upgrades of %s (-want +got):\n%s", version, diff)
		}
	}
	text := content(t, catalog)
	for _, part := range []string{bundleImage, image, "kind: RollSet", "olm.csv.metadata"} {
		if !strings.Contains(text, part) {
			t.Errorf("the catalog lacks %s", part)
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// other returns a catalog of another operator.
func other(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	text, err := yaml.Marshal(declcfg.Package{Schema: declcfg.SchemaPackage, Name: "other", DefaultChannel: "stable"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// strange returns a catalog with an entry whose name is not one of ours.
func strange(t *testing.T, catalog string) string {
	t.Helper()
	text := strings.Replace(content(t, catalog), "name: rollset.v0.1.0", "name: web.v1", 1)
	path := filepath.Join(t.TempDir(), "catalog.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
