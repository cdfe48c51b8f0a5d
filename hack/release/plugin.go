// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	// pluginProgram is the folder of the kubectl plugin, and pluginName its file.
	pluginProgram = "./cmd/kubectl-rollset"
	pluginName    = "kubectl-rollset"
	// krewManifest is the file by which krew installs the plugin. Its name is the plugin's.
	krewManifest = "rollset.yaml"
	// licenseName is the license that goes with the binary.
	licenseName = "LICENSE"
	windows     = "windows"
)

// plugins returns the platforms that the plugin is built for.
func plugins() []target {
	var all []target
	for _, system := range []string{"linux", "darwin", windows} {
		for _, arch := range architectures() {
			all = append(all, target{pluginProgram, system, arch})
		}
	}
	return all
}

// archive returns the name of the archive for a platform.
func (t target) archive() string {
	name := pluginName + "-" + t.os + "-" + t.arch
	if t.os == windows {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// file returns the name of the binary in its archive.
func (t target) file() string {
	if t.os == windows {
		return pluginName + ".exe"
	}
	return pluginName
}

// writePlugin builds the plugin for all platforms. It writes an archive and a bill of materials for each, and the manifest
// for krew.
func writePlugin(ctx context.Context, root, out, version, downloads string) error {
	if downloads == "" {
		return errors.New("-downloads is missing: the manifest for krew says where the archives are")
	}
	folder, err := os.MkdirTemp("", "plugin")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	manifest := newKrew()
	for _, t := range plugins() {
		b, err := t.buildVersion(ctx, root, filepath.Join(folder, t.file()), version)
		if err != nil {
			return err
		}
		sum, err := t.publish(b, filepath.Join(root, licenseName), out)
		if err != nil {
			return err
		}
		manifest.Spec.Version = b.version()
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, t.platform(strings.TrimSuffix(downloads, "/"), sum))
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return fmt.Errorf("write %s: %w", krewManifest, err)
	}
	return os.WriteFile(filepath.Join(out, krewManifest), text, 0o644)
}

// publish writes the archive of a binary and its bill of materials into a folder. It returns the archive's SHA-256.
func (t target) publish(b binary, license, out string) (sum string, err error) {
	archive := filepath.Join(out, t.archive())
	if err := t.pack(b, license, archive); err != nil {
		return "", fmt.Errorf("pack %s: %w", t.archive(), err)
	}
	if err := writeJSON(archive+".cdx.json", materials(b)); err != nil {
		return "", err
	}
	return sha256Of(archive)
}

// pack writes a binary and its license into an archive. Its only time is that of the commit.
func (t target) pack(b binary, license, path string) error {
	committed, err := b.committed()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	terms, err := os.ReadFile(license)
	if err != nil {
		return err
	}
	files := []packed{{t.file(), 0o755, program}, {licenseName, 0o644, terms}}
	var archive bytes.Buffer
	write := writeTarball
	if t.os == windows {
		write = writeZip
	}
	if err := write(&archive, files, committed); err != nil {
		return err
	}
	return os.WriteFile(path, archive.Bytes(), 0o644)
}

// packed is a file in an archive.
type packed struct {
	name    string
	mode    os.FileMode
	content []byte
}

// filesOf returns the files of a folder, sorted by name.
func filesOf(folder string) (files []packed, err error) {
	tree := os.DirFS(folder)
	err = fs.WalkDir(tree, ".", func(name string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		files = append(files, packed{name, 0o644, content})
		return err
	})
	return files, err
}

// writeTarball writes a compressed tar.
func writeTarball(w io.Writer, files []packed, at time.Time) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(writeTar(compressed, files, at, tar.FormatPAX), compressed.Close())
}

// writeTar writes a tar of files that belong to root and have the same time.
func writeTar(w io.Writer, files []packed, at time.Time, format tar.Format) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: at.UTC(), Format: format}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeZip(w io.Writer, files []packed, at time.Time) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(f.mode)
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// krew is the manifest of a plugin, https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
type krew struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   krewName `json:"metadata"`
	Spec       krewSpec `json:"spec"`
}

type krewName struct {
	Name string `json:"name"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// newKrew returns the manifest without its version and platforms.
func newKrew() krew {
	return krew{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2",
		Kind:       "Plugin",
		Metadata:   krewName{strings.TrimSuffix(krewManifest, ".yaml")},
		Spec: krewSpec{
			Homepage:         "https://rollset.dev",
			ShortDescription: "See, steer and explain rollouts of RollSets",
			Description: "Shows a RollSet with its revisions, pods and claims, says what holds a rollout up and what would lift it, steers\n" +
				"it (undo, restart, pause, resume, set image, set partition), and moves StatefulSets, Deployments and CloneSets\n" +
				"over without a restart.\n",
		},
	}
}

// platform returns the entry of an archive in a manifest.
func (t target) platform(downloads, sum string) krewPlatform {
	return krewPlatform{
		Selector: krewSelector{map[string]string{"os": t.os, "arch": t.arch}},
		URI:      downloads + "/" + t.archive(), SHA256: sum, Bin: t.file(),
	}
}
