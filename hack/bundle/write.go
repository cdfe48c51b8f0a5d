// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed" // icon.svg
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed icon.svg
var icon []byte

// write writes all files of the bundle into a folder, and removes everything else from it.
func (r *release) write(manifests io.Reader, folder string) error {
	in, err := read(manifests)
	if err != nil {
		return fmt.Errorf("read manifests: %w", err)
	}
	files, err := r.files(in)
	if err != nil {
		return err
	}
	return writeFiles(folder, files)
}

// writeFiles replaces a folder by files: their text, or what is to be written as YAML.
func writeFiles(folder string, files map[string]any) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for path, content := range files {
		text, ok := content.([]byte)
		if !ok {
			var err error
			if text, err = yaml.Marshal(content); err != nil {
				return fmt.Errorf("encode %s: %w", path, err)
			}
		}
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // read by others in an image
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files returns the contents of the bundle by their paths.
func (r *release) files(in *input) (map[string]any, error) {
	csv, err := r.clusterServiceVersion(in)
	if err != nil {
		return nil, fmt.Errorf("make the ClusterServiceVersion: %w", err)
	}
	files := map[string]any{
		"manifests/" + packageName + ".clusterserviceversion.yaml":                  csv,
		"manifests/" + in.crd.Spec.Group + "_" + in.crd.Spec.Names.Plural + ".yaml": in.crdObject,
		"metadata/annotations.yaml":                                                 map[string]any{"annotations": annotations()},
		"tests/scorecard/config.yaml":                                               in.scorecard,
		"Dockerfile":                                                                dockerfile(annotations(), "manifests", "metadata", "tests"),
	}
	for _, o := range in.others {
		files[fmt.Sprintf("manifests/%s_%s.yaml", o.GetName(), strings.ToLower(o.GetKind()))] = o.Object
	}
	return files, nil
}

// annotations describe the content of the bundle, and its channels.
func annotations() map[string]string {
	const prefix = "operators.operatorframework.io."
	return map[string]string{
		prefix + "bundle.mediatype.v1":       "registry+v1",
		prefix + "bundle.manifests.v1":       "manifests/",
		prefix + "bundle.metadata.v1":        "metadata/",
		prefix + "bundle.package.v1":         packageName,
		prefix + "bundle.channels.v1":        channelName,
		prefix + "bundle.channel.default.v1": channelName,
		prefix + "test.mediatype.v1":         "scorecard+v1",
		prefix + "test.config.v1":            "tests/scorecard/",
	}
}

// dockerfile builds an image of folders that lie beside it.
func dockerfile(labels map[string]string, folders ...string) []byte {
	var text bytes.Buffer
	text.WriteString("# Generated.\nFROM scratch\n")
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&text, "LABEL %s=%s\n", label, labels[label])
	}
	for _, folder := range folders {
		fmt.Fprintf(&text, "COPY %[1]s /%[1]s/\n", folder)
	}
	return text.Bytes()
}
