// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageName is the name of the manager's image among the files of a release.
const imageName = "image"

// archivePath returns the file of an image: an OCI image layout, as an archive.
func archivePath(out, name string) string { return filepath.Join(out, name+".tar") }

// digestPath returns the file with the digest that an image has in a registry.
func digestPath(out, name string) string { return filepath.Join(out, name+".digest") }

// writeImage builds the binaries, and writes their image and its digest.
func writeImage(ctx context.Context, root, out, version string) error {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	var binaries []binary
	for _, arch := range architectures() {
		b, err := target{".", "linux", arch}.buildVersion(ctx, root, binaryPath(out, arch), version)
		if err != nil {
			return err
		}
		binaries = append(binaries, b)
	}
	var platforms []platform
	for _, b := range binaries {
		content, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		platforms = append(platforms, platform{
			arch: b.arch, entries: []packed{{name: "manager", mode: 0o755, content: content}}, by: "go build",
			config: v1.Config{User: "65532:65532", Entrypoint: []string{"/manager"}, WorkingDir: "/", Labels: labels(b)},
		})
	}
	return writeIndex(out, imageName, platforms, binaries[0])
}

// platform is an image for one platform: some files. That of the manager is only the binary. It needs no shell, users, time zones
// or certificates: the only server that it talks to is the API server, and every pod is given its certificate authority.
type platform struct {
	arch    string
	entries []packed
	config  v1.Config
	// by says what made the files.
	by string
}

// writeIndex writes the archive of an image for several platforms, and its digest. It is as old as the commit of a binary.
func writeIndex(out, name string, platforms []platform, b binary) error {
	created, err := b.committed()
	if err != nil {
		return err
	}
	index, err := imageIndex(platforms, created)
	if err != nil {
		return fmt.Errorf("make the image %s: %w", name, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := writeArchive(archivePath(out, name), index, b); err != nil {
		return fmt.Errorf("write the image %s: %w", name, err)
	}
	return os.WriteFile(digestPath(out, name), []byte(digest.String()+"\n"), 0o644)
}

// writeArchive writes an image as an archive.
func writeArchive(path string, index v1.ImageIndex, b binary) error {
	folder, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	images, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": b.version()})
	if err := images.AppendIndex(index, name); err != nil {
		return err
	}
	at, err := b.committed()
	if err != nil {
		return err
	}
	files, err := filesOf(folder)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := writeTar(&archive, files, at, tar.FormatUSTAR); err != nil {
		return err
	}
	return os.WriteFile(path, archive.Bytes(), 0o644)
}

// imageIndex returns the image for all platforms.
func imageIndex(platforms []platform, created time.Time) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		image, err := p.image(created)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: notArtifact{image}, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: p.arch},
		}})
	}
	annotated, ok := mutate.Annotations(index, platforms[0].config.Labels).(v1.ImageIndex)
	if !ok {
		return nil, errors.New("the annotated index is none")
	}
	return annotated, nil
}

// notArtifact is an image that an index lists without an artifact type, which only other things than images have. The
// library would use the type of its configuration.
type notArtifact struct{ v1.Image }

// ArtifactType returns an empty string.
func (notArtifact) ArtifactType() (string, error) { return "", nil }

// image returns the image.
func (p platform) image(created time.Time) (v1.Image, error) {
	var archive bytes.Buffer
	if err := writeTar(&archive, p.entries, created, tar.FormatUSTAR); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: "linux", Architecture: p.arch, Created: v1.Time{Time: created}, RootFS: v1.RootFS{Type: "layers"}, Config: p.config,
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: p.by}})
}

// labels describe the image, with the keys of the OCI.
func labels(b binary) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":       "RollSet",
		prefix + "description": "The manager of RollSets: StatefulSet, Deployment and CloneSet in one kind.",
		prefix + "licenses":    "Apache-2.0",
		prefix + "source":      "https://" + b.info.Main.Path,
		prefix + "created":     b.setting("vcs.time"),
		prefix + "revision":    b.revision(),
		prefix + "version":     b.version(),
	}
}
