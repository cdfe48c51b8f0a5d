// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSameProgramSameBytes(t *testing.T) {
	write := func() []byte {
		path := filepath.Join(t.TempDir(), "images.tar")
		if err := Write(path, []byte("program")); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	if !bytes.Equal(write(), write()) {
		t.Error("the same program gives other bytes the second time")
	}
}

// Every blob has the digest that it is named after, and every name leads to a manifest that is there.
func TestArchiveIsWhole(t *testing.T) {
	files := archived(t)
	for name, content := range files {
		if sum, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && digest(content) != "sha256:"+sum {
			t.Errorf("%s has digest %s", name, digest(content))
		}
	}
	names := map[string]string{}
	for _, m := range index(t, files).Manifests {
		name := m.Annotations["io.containerd.image.name"]
		names[name] = m.Digest
		content, ok := files["blobs/sha256/"+strings.TrimPrefix(m.Digest, "sha256:")]
		if !ok || len(content) != m.Size {
			t.Errorf("%s leads to a manifest of %d bytes, and %d are there", name, m.Size, len(content))
		}
	}
	if one, again := names["docker.io/library/web:1"], names["docker.io/library/web:1-again"]; one == "" || one != again {
		t.Errorf("two tags of one image lead to %q and %q", one, again)
	}
	if one, two := names["docker.io/library/web:1"], names["docker.io/library/web:2"]; one == two {
		t.Errorf("two images have one digest: %q", one)
	}
}

// Each repository has a name by digest, as after a pull.
func TestNamesByDigest(t *testing.T) {
	var names []string
	for _, m := range index(t, archived(t)).Manifests {
		names = append(names, m.Annotations["io.containerd.image.name"])
		if repository, _, ok := strings.Cut(m.Annotations["io.containerd.image.name"], "@"); ok && repository+"@"+m.Digest != names[len(names)-1] {
			t.Errorf("%s leads to %s", names[len(names)-1], m.Digest)
		}
	}
	for _, i := range catalog() {
		for _, name := range i.names {
			repository := name[:strings.LastIndex(name, ":")]
			if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, repository+"@") }) {
				t.Errorf("%s has no name by digest", repository)
			}
		}
	}
}

type imageIndex struct {
	Manifests []struct {
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Annotations map[string]string `json:"annotations"`
	} `json:"manifests"`
}

func index(t *testing.T, files map[string][]byte) (i imageIndex) {
	t.Helper()
	if err := json.Unmarshal(files["index.json"], &i); err != nil {
		t.Fatal(err)
	}
	return i
}

func archived(t *testing.T) map[string][]byte {
	t.Helper()
	a := newArchive([]byte("program"))
	if err := a.add(); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(&a.out); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
