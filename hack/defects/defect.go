// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

// defect is one mistake.
type defect struct {
	// name is the name of the mistake, and why what it breaks.
	name, why string
	// root is the folder of the module, file the file with the mistake, relative to it.
	root, file string
	// find is the right text, instead the wrong one.
	find, instead string
}

// parse reads one file of testdata.
func parse(root, path string) (defect, error) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return defect{}, err
	}
	d := defect{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), why: strings.TrimSpace(string(archive.Comment)), root: root}
	if len(archive.Files) != 2 || archive.Files[1].Name != "instead" || d.why == "" {
		return defect{}, errors.New("want a sentence, a section named by the file to change, and a section named instead")
	}
	d.file = archive.Files[0].Name
	d.find = strings.TrimSuffix(string(archive.Files[0].Data), "\n")
	d.instead = strings.TrimSuffix(string(archive.Files[1].Data), "\n")
	return d, nil
}

// pkg returns the folder of the package that has the mistake.
func (d defect) pkg() string { return filepath.Dir(d.file) }

// source returns the file with the mistake in it.
func (d defect) source() (string, error) {
	right, err := os.ReadFile(filepath.Join(d.root, d.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(right), d.find); n != 1 {
		return "", fmt.Errorf("the text to replace is %d times in %s, want once; adapt the defect to the new code", n, d.file)
	}
	// No line below moves, because some tests compare lines of the source with those that ran.
	moved := strings.Count(d.find, "\n") - strings.Count(d.instead, "\n")
	if moved < 0 {
		return "", errors.New("the text to find has fewer lines than what stands there instead; take in some around it")
	}
	return strings.Replace(string(right), d.find, d.instead+strings.Repeat("\n", moved), 1), nil
}

// overlay writes the wrong file, and the list that makes the compiler use it, into a folder. It returns the list's path.
func (d defect) overlay(dir string) (string, error) {
	source, err := d.source()
	if err != nil {
		return "", err
	}
	return writeOverlay(dir, map[string]string{filepath.Join(d.root, d.file): source})
}

// writeOverlay writes sources, by the paths of the files that they stand for, and the list that makes the compiler use them, into a
// folder. It returns the list's path.
func writeOverlay(dir string, sources map[string]string) (string, error) {
	replace := map[string]string{}
	for path, source := range sources {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(replace[path], []byte(source), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
