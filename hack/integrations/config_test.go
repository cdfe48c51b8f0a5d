// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package integrations

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/test/metricsdoc"
)

// root is the folder of the project.
const root = "../.."

// read reads a file of the project.
func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// decode reads a file of the project. It may not have unknown fields.
func decode(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(read(t, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func documented(t *testing.T) map[string]metricsdoc.Metric {
	t.Helper()
	metrics, err := metricsdoc.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}
