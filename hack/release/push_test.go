// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestPush pushes an image to a registry, where it must have the recorded digest.
func TestPush(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	out := filepath.Join(t.TempDir(), "dist")
	if err := run(t.Context(), []string{"image", "-root", project(t), "-out", out}); err != nil {
		t.Fatal(err)
	}
	to := strings.TrimPrefix(server.URL, "http://") + "/program:" + version
	if err := run(t.Context(), []string{"push", "-out", out, "-to", to}); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(to)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	digest, err := index.Digest()
	if want := files(t, out)["image.digest"]; err != nil || digest.String()+"\n" != want {
		t.Errorf("the registry has %s, %v, want %s", digest, err, want)
	}
}

// TestPushRefused checks what cannot be pushed, and where to.
func TestPushRefused(t *testing.T) {
	t.Parallel()
	broken := t.TempDir()
	if err := os.WriteFile(archivePath(broken, imageName), []byte("not an archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ out, to, want string }{
		"no tag":     {broken, "example.com/rollset", "-to wants <registry>/<name>:<tag>"},
		"nowhere":    {broken, "", "-to wants <registry>/<name>:<tag>"},
		"no image":   {t.TempDir(), "example.com/rollset:v1", "image.tar"},
		"no archive": {broken, "example.com/rollset:v1", "image.tar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), []string{"push", "-out", c.out, "-to", c.to})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
