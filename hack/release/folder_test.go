// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestFolder makes an image of a bundle.
func TestFolder(t *testing.T) {
	t.Parallel()
	out := imaged(t, project(t))
	folder := filepath.Join(out, "bundle")
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("manifests/csv.yaml", "kind: ClusterServiceVersion\n")
	write("metadata/annotations.yaml", "annotations: {}\n")
	write("notes/other.txt", "not for the image\n")
	write("Dockerfile", "# Generated.\nFROM scratch\nLABEL a.b=c\nCOPY manifests /manifests/\nCOPY metadata /metadata/\n")
	args := []string{"folder", "-out", out, "-name", "bundle"}
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	first := files(t, out)
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, files(t, out)); diff != "" {
		t.Error("a second time gives other files")
	}

	unpacked := t.TempDir()
	if err := unpack(archivePath(out, "bundle"), unpacked); err != nil {
		t.Fatal(err)
	}
	images, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	list, err := images.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if digest := first["bundle.digest"]; digest != list.Manifests[0].Digest.String()+"\n" {
		t.Errorf("the digest is %q, want %s", digest, list.Manifests[0].Digest)
	}
	index, err := images.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	inner, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(inner.Manifests) != len(architectures()) {
		t.Fatalf("the image is for %d platforms", len(inner.Manifests))
	}
	for _, manifest := range inner.Manifests {
		image, err := index.Image(manifest.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.Labels["a.b"] != "c" {
			t.Errorf("labels %v", config.Config.Labels)
		}
		content := t.TempDir()
		layers := filepath.Join(t.TempDir(), "layers.tar")
		file, err := os.Create(layers)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.ReadFrom(mutate.Extract(image)); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if err := unpack(layers, content); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"manifests/csv.yaml": "kind: ClusterServiceVersion\n", "metadata/annotations.yaml": "annotations: {}\n"}
		if diff := cmp.Diff(want, files(t, content)); diff != "" {
			t.Errorf("the image's files (-want +got):\n%s", diff)
		}
	}

	write("Dockerfile", "FROM scratch\nRUN rm -rf /\n")
	if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), `"RUN rm -rf /" is neither`) {
		t.Errorf("a Dockerfile that it does not understand: %v", err)
	}
}
