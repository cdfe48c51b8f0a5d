// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// chartFolder is the folder of the manager's Helm chart in the project.
const chartFolder = "charts/rollset"

// chartName returns the name of the archive of a version's chart, as helm package chooses it.
func chartName(version string) string {
	return "rollset-" + strings.TrimPrefix(version, "v") + ".tgz"
}

// writeChart packs the chart with the version of the release and, as its default, the image that was built. Its only time is
// that of the commit.
func writeChart(root, out, version, image string) error {
	if version == "" || image == "" {
		return errors.New("-version and -to are missing: the chart names the image of the release")
	}
	digest, err := os.ReadFile(digestPath(out, imageName))
	if err != nil {
		return err
	}
	b, err := inspect(binaryPath(out, architectures()[0]), architectures()[0])
	if err != nil {
		return err
	}
	committed, err := b.committed()
	if err != nil {
		return err
	}
	files, err := chartFiles(filepath.Join(root, chartFolder), map[string]map[string]string{
		"Chart.yaml": {"version": strings.TrimPrefix(version, "v"), "appVersion": strings.TrimPrefix(version, "v")},
		"values.yaml": {
			"  repository": image, "  tag": version, "  digest": strings.TrimSpace(string(digest)),
		},
	})
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := writeTarball(&archive, files, committed); err != nil {
		return fmt.Errorf("pack the chart: %w", err)
	}
	return os.WriteFile(filepath.Join(out, chartName(version)), archive.Bytes(), 0o644)
}

// chartFiles returns the files of a chart, sorted by name, with new values in some lines.
func chartFiles(folder string, values map[string]map[string]string) ([]packed, error) {
	files, err := filesOf(folder)
	for i := range files {
		f := &files[i]
		for key, value := range values[f.name] {
			line := regexp.MustCompile(`(?m)^` + key + `: .*$`)
			if n := len(line.FindAll(f.content, -1)); n != 1 {
				return nil, fmt.Errorf("%s has %d lines %q, not one", f.name, n, key)
			}
			f.content = line.ReplaceAllLiteral(f.content, []byte(key+": "+value))
		}
		f.name = "rollset/" + f.name
	}
	return files, err
}
