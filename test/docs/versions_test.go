// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestVersions checks that all that names the supported versions of Kubernetes names those that can be built.
func TestVersions(t *testing.T) {
	root, _ := pages(t)
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "hack/controlplane/build.sh"), "versions").Output()
	if err != nil {
		t.Fatal(err)
	}
	versions := strings.Fields(string(out))
	number := regexp.MustCompile(`1\.[0-9]+`)
	for path, line := range map[string]string{
		"docs/kubernetes.md":         `(?m)^\| what RollSet uses \|.*$`,
		".github/workflows/test.yml": `(?m)^ +version: \[.*$`,
	} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := number.FindAllString(regexp.MustCompile(line).FindString(string(text)), -1); !slices.Equal(got, versions) {
			t.Errorf("%s has the versions %v; %v can be built", path, got, versions)
		}
	}
	for _, path := range []string{"charts/rollset/Chart.yaml", "config/manifests/bases/rollset.clusterserviceversion.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		least := regexp.MustCompile(`(?m)^ *(?:kubeVersion|minKubeVersion): .*`).FindString(string(text))
		if got := number.FindString(least); got != versions[0] {
			t.Errorf("%s requires %q; the oldest version that is tested is %s", path, got, versions[0])
		}
	}
}
