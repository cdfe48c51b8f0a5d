// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pushImage pushes an image in a folder to a registry, byte for byte, so that it has the digest that the installer names.
// It uses the credentials of docker login or podman login.
func pushImage(ctx context.Context, out, image, to string) error {
	target, err := name.NewTag(to, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("-to wants <registry>/<name>:<tag>: %w", err)
	}
	folder, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	archive := archivePath(out, image)
	if err := unpack(archive, folder); err != nil {
		return fmt.Errorf("read %s: %w", archive, err)
	}
	images, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, err)
	}
	list, err := images.IndexManifest()
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, err)
	}
	if len(list.Manifests) != 1 {
		return fmt.Errorf("%s has %d images, want 1", archive, len(list.Manifests))
	}
	index, err := images.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		return fmt.Errorf("read %s: %w", archive, err)
	}
	if err := remote.WriteIndex(target, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", target, err)
	}
	_, err = fmt.Printf("pushed %s@%s\n", target, list.Manifests[0].Digest)
	return err
}

// unpack writes the files of an archive into a folder, and nowhere else.
func unpack(archive, folder string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := root.MkdirAll(filepath.Dir(header.Name), 0o750); err != nil {
			return err
		}
		if err := root.WriteFile(header.Name, content, 0o600); err != nil {
			return err
		}
	}
}
