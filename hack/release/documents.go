// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1"
)

const (
	provenanceName = "provenance.intoto.json"
	checksumsName  = "SHA256SUMS"
	installerName  = "install.yaml"
)

// writeDocuments writes the bills of materials, the provenance and the checksums of the binaries and the image in a folder.
func writeDocuments(out string) error {
	var binaries []binary
	for _, arch := range architectures() {
		b, err := inspect(binaryPath(out, arch), arch)
		if err != nil {
			return err
		}
		binaries = append(binaries, b)
		if err := writeJSON(b.path+".cdx.json", materials(b)); err != nil {
			return err
		}
	}
	products := []string{installerName, filepath.Base(archivePath(out, imageName))}
	for _, b := range binaries {
		products = append(products, filepath.Base(b.path), filepath.Base(b.path)+".cdx.json")
	}
	products = append(products, krewManifest)
	for _, t := range plugins() {
		products = append(products, t.archive(), t.archive()+".cdx.json")
	}
	more, err := optionalProducts(out)
	if err != nil {
		return err
	}
	products = append(products, more...)
	subjects, err := describe(out, products)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(digestPath(out, imageName))
	if err != nil {
		return err
	}
	digest, err := v1.NewHash(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read the digest of the image: %w", err)
	}
	subjects = append(subjects, descriptor{Name: "image", Digest: map[string]string{digest.Algorithm: digest.Hex}})
	if err := writeJSON(filepath.Join(out, provenanceName), provenance(binaries[0], subjects)); err != nil {
		return err
	}
	return writeChecksums(out)
}

// optionalProducts returns the files in a folder that other commands than image and plugin have written.
func optionalProducts(out string) ([]string, error) {
	var products []string
	for _, pattern := range []string{chartName("*"), "bundle.t*", "catalog.t*", "catalog.yaml"} {
		found, err := filepath.Glob(filepath.Join(out, pattern))
		if err != nil {
			return nil, err
		}
		for _, product := range found {
			products = append(products, filepath.Base(product))
		}
	}
	return products, nil
}

// describe returns the digests of files of a folder.
func describe(folder string, names []string) ([]descriptor, error) {
	var all []descriptor
	for _, name := range names {
		sum, err := sha256Of(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		all = append(all, descriptor{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	return all, nil
}

// writeChecksums writes a file for sha256sum -c over all files of a folder.
func writeChecksums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == checksumsName {
			continue
		}
		sum, err := sha256Of(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, entry.Name())
	}
	return os.WriteFile(filepath.Join(folder, checksumsName), []byte(lines.String()), 0o644)
}

func sha256Of(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

func writeJSON(path string, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
