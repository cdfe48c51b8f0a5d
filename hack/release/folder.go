// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1"
)

// dockerfileName is the file of a folder that says how to make an image of it.
const dockerfileName = "Dockerfile"

// writeFolder makes an image of a folder of files, as the Dockerfile in it says, and packs the folder too. It serves the bundle and
// the catalog of the Operator Lifecycle Manager, which hold data only: the image is the same on every platform.
func writeFolder(folder, out, name string) error {
	b, err := inspect(binaryPath(out, architectures()[0]), architectures()[0])
	if err != nil {
		return err
	}
	created, err := b.committed()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, dockerfileName))
	if err != nil {
		return err
	}
	config, copied, err := readDockerfile(string(text))
	if err != nil {
		return fmt.Errorf("%s of %s: %w", dockerfileName, folder, err)
	}
	files, err := filesOf(folder)
	if err != nil {
		return err
	}
	var entries []packed
	for i := range files {
		if top, _, _ := strings.Cut(files[i].name, "/"); copied[top] {
			entries = append(entries, files[i])
		}
		files[i].name = path.Join(name, files[i].name)
	}
	var archive bytes.Buffer
	if err := writeTarball(&archive, files, created); err != nil {
		return fmt.Errorf("pack %s: %w", folder, err)
	}
	if err := os.WriteFile(filepath.Join(out, name+".tgz"), archive.Bytes(), 0o644); err != nil {
		return err
	}
	var platforms []platform
	for _, arch := range architectures() {
		platforms = append(platforms, platform{arch: arch, entries: entries, config: config, by: "make " + name})
	}
	return writeIndex(out, name, platforms, b)
}

// readDockerfile understands what the Dockerfile of such a folder has: no base, labels, and folders that keep their names.
func readDockerfile(text string) (config v1.Config, copied map[string]bool, err error) {
	config.Labels, copied = map[string]string{}, map[string]bool{}
	for line := range strings.Lines(text) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		key, value, isLabel := strings.Cut(rest, "=")
		from, to, isCopy := strings.Cut(rest, " ")
		switch {
		case verb == "", verb == "#", verb == "FROM" && rest == "scratch":
		case verb == "LABEL" && isLabel:
			config.Labels[key] = value
		case verb == "COPY" && isCopy && to == "/"+from+"/":
			copied[from] = true
		default:
			return config, nil, fmt.Errorf("%q is neither a label nor a folder to copy", strings.TrimSpace(line))
		}
	}
	return config, copied, nil
}
