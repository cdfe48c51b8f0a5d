// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
)

// TestStrangersTurnGates turns a gate fifty times a second, for five seconds, against what the controller wants. It may turn
// it back about once a second, and no pod is moved for it.
func TestStrangersTurnGates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, turn string }{
		"at rest":                     {"settle", "close-gate a"},
		"out of service for a while":  {"grace 60\nsettle\nimage app:v2\nrun 1s", "open-gate a"},
		"while a hook is waited for":  {"hook preDelete!\nsettle\nmark a\nreplicas 0\nrun 1s", "open-gate a"},
		"while its update is held":    {"settle\nimage app:missing\nrun 5s", "open-gate a"},
		"while it waits to be normal": {"hook preNormal!\nrun 5s", "open-gate a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := "replicas 1\nmaxUnavailable 1\npolicy InPlaceIfPossible\n" + c.script + "\n"
			script, err := ParseScript(before + strings.Repeat(c.turn+"\nrun 20ms\n", 250))
			if err != nil {
				t.Fatal(err)
			}
			w, turned := NewWorld(t.Context(), 0), 0
			w.Store.OnWrite(func(e *Entry) {
				if strings.HasPrefix(e.Actor, managerActor) && e.Key.Kind == Pods && e.Subresource == "status" {
					turned++
				}
			})
			if err := w.Play(t.Context(), script); err != nil {
				t.Fatalf("%v\n%s", err, w.Film)
			}
			if turned > 10 {
				t.Errorf("gates were turned %d times:\n%s", turned, w.Film)
			}
		})
	}
}
