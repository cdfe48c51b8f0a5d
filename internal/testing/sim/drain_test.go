// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// A node that is cordoned and kept again ten times a second causes no write to pods. One that stays cordoned after that does.
func TestFlappingNodes(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{
		"random, with surge": "maxSurge 1\nmaxUnavailable 0\n",
		"random":             "maxUnavailable 1\n",
		"ordinal":            "identity Ordinal\nmaxUnavailable 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := played(t, words+"replicas 4\non-drain Replace\nsettle\n"+
				strings.Repeat("cordon-node a\nrun 50ms\nkeep-node a\nrun 50ms\n", 100))
			if n := podsWritten(w); n != 4 {
				t.Errorf("pods are written %d times, want 4", n)
			}
			if err := w.Play(t.Context(), mustParse(t, "cordon-node a\nsettle\n")); err != nil {
				t.Fatal(err)
			}
			if n := podsWritten(w); n <= 4 {
				t.Error("the pods of a node that leaves stay")
			}
		})
	}
}

// podsWritten returns how many writes the manager has sent to pods.
func podsWritten(w *World) int {
	n := 0
	for i := range w.Store.Log() {
		if e := &w.Store.Log()[i]; e.Actor == simulator.ManagerActor && e.Key.Kind == apiserver.Pods {
			n++
		}
	}
	return n
}
