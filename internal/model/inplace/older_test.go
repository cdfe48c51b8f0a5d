// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"testing"

	"rollset.dev/rollset/internal/model/inplace"
)

// TestDoneWithoutGenerations covers API servers and kubelets older than 1.35, which report no observedGeneration, and those
// older than 1.33, which count no generations either.
func TestDoneWithoutGenerations(t *testing.T) {
	t.Parallel()
	for _, generation := range []int64{0, 1} {
		p := pod(template(), "r1")
		p.Generation = generation
		report{image: "web:v1", imageID: "web@sha256:1", containerID: "c://1"}.write(p)
		patch, err := inplace.Patch(p, inplace.Change{Images: map[string]string{"web": "web:v2"}, Restarts: []string{"web"}}, "r2")
		if err != nil {
			t.Fatal(err)
		}
		p = merged(t, p, patch)
		if p.Generation > 0 {
			p.Generation++
		}
		state, err := inplace.StateOf(p)
		if err != nil {
			t.Fatalf("generation %d: %v", generation, err)
		}
		if done, waiting := done(p, template(), state); done || waiting != "container web has not restarted with web:v2 yet" {
			t.Errorf("generation %d, before the restart: %v, %q", generation, done, waiting)
		}
		report{image: "web:v2", imageID: "web@sha256:2", containerID: "c://2"}.write(p)
		if done, waiting := done(p, template(), state); !done {
			t.Errorf("generation %d, after the restart: %q", generation, waiting)
		}
	}
}
