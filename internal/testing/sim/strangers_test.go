// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// TestStrangersTurnGates turns a gate fifty times a second, for five seconds, against what the controller wants. It may turn
// a gate each way about once a second, and no pod is moved for it.
func TestStrangersTurnGates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, turn string }{
		"at rest":                     {"settle", "close-gate a"},
		"out of service for a while":  {"grace 60\nsettle\nimage app:v2\nrun 1s", "open-gate a"},
		"while a hook is waited for":  {"hook preDelete!\nsettle\nmark a\nreplicas 0\nrun 1s", "open-gate a"},
		"while its update is held":    {"settle\nimage app:missing\nrun 5s", "open-gate a"},
		"while it waits to be normal": {"hook preNormal!\nrun 5s", "open-gate a"},
		"while another is to follow":  {"replicas 2\ngrace 60\nsettle\nimage app:v2\nrun 70s", "close-gate b\nrun 20ms\nopen-gate b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := "replicas 1\nmaxUnavailable 1\npolicy InPlaceIfPossible\n" + c.script + "\n"
			turns := 250 / (1 + strings.Count(c.turn, "\nrun 20ms"))
			script := mustParse(t, before+strings.Repeat(c.turn+"\nrun 20ms\n", turns))
			w, turned := NewWorld(t.Context(), 0), map[string]int{}
			w.Store.OnWrite(func(e *apiserver.Entry) {
				if pod, ok := e.New.(*corev1.Pod); ok && strings.HasPrefix(e.Actor, managerActor) && e.Subresource == "status" {
					turned[fmt.Sprint(pod.Name, " to ", inplace.GateOf(pod).Status)]++
				}
			})
			if err := w.Play(t.Context(), script); err != nil {
				t.Fatalf("%v\n%s", err, w.Film)
			}
			for turn, n := range turned {
				if n > 10 {
					t.Errorf("%s %d times:\n%s", turn, n, w.Film)
				}
			}
		})
	}
}
