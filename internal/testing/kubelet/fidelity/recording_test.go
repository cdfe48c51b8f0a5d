// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

// Recording is the film of a real kubelet. Where the model gives another one on purpose, it has that, and why.
type Recording struct {
	Real, Model []string
	Why         string
}

const (
	realSection  = "real"
	modelSection = "model"
)

// readRecording reads the recording of a script.
func readRecording(name string) (r Recording, err error) {
	archive, err := txtar.ParseFile(path(name))
	if err != nil {
		return r, fmt.Errorf("read recording: %w", err)
	}
	r.Why = strings.TrimSpace(string(archive.Comment))
	for _, file := range archive.Files {
		lines := strings.Split(strings.TrimSpace(string(file.Data)), "\n")
		switch file.Name {
		case realSection:
			r.Real = lines
		case modelSection:
			r.Model = lines
		default:
			return r, fmt.Errorf("recording %s has a section %s", name, file.Name)
		}
	}
	if (r.Model == nil) != (r.Why == "") {
		return r, fmt.Errorf("recording %s: a film of the model that differs has to say why, and only such a film", name)
	}
	return r, nil
}

// write writes the recording of a script.
func (r *Recording) write(name string) error {
	archive := txtar.Archive{Files: []txtar.File{{Name: realSection, Data: inLines(r.Real)}}}
	if r.Why != "" {
		archive.Comment = []byte(r.Why + "\n")
		archive.Files = append(archive.Files, txtar.File{Name: modelSection, Data: inLines(r.Model)})
	}
	if err := os.WriteFile(path(name), txtar.Format(&archive), 0o600); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

// OfModel returns the film that the model must give.
func (r *Recording) OfModel() []string {
	if r.Model != nil {
		return r.Model
	}
	return r.Real
}

func path(name string) string { return filepath.Join("testdata", name+".txtar") }

func inLines(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
