// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the films of the model in recordings that have one")

// The model gives the film of the real kubelet, or the deviating film in the recording, which has the reason.
func TestModelAsRecorded(t *testing.T) {
	for _, s := range Scripts() {
		t.Run(s.Name, func(t *testing.T) {
			recording, err := readRecording(s.Name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Model(&s)
			if err != nil {
				t.Fatal(err)
			}
			if *update && recording.Why != "" {
				recording.Model = got
				if err := recording.write(s.Name); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(recording.OfModel(), got); diff != "" {
				t.Errorf("the model's film differs (-recorded +model):\n%s", diff)
			}
			if recording.Model != nil && cmp.Equal(recording.Real, recording.Model) {
				t.Error("the recording says why the model differs, and it does not")
			}
		})
	}
}

// No recording is left of a script that there is no more, and no name is used twice.
func TestRecordingsAreOfScripts(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Scripts() {
		if names[s.Name] {
			t.Errorf("two scripts are called %s", s.Name)
		}
		names[s.Name] = true
	}
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !names[strings.TrimSuffix(file.Name(), ".txtar")] {
			t.Errorf("testdata/%s is a recording of no script", file.Name())
		}
	}
}
