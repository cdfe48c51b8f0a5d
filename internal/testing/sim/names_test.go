// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
)

// TestScaledToZeroAndBack scales a set to zero and back a thousand times, with a restart now and then. The rule that no name
// comes twice judges every pod.
func TestScaledToZeroAndBack(t *testing.T) {
	t.Parallel()
	const turns = 1000
	w := played(t, "replicas 2\nsettle\n"+strings.Repeat(strings.Repeat("replicas 0\nrun 3s\nreplicas 2\nrun 3s\n", 20)+"restart\n", turns/20))
	if err := w.CheckConverged(t.Context()); err != nil {
		t.Fatal(err)
	}
	if issued := w.Set().Status.IssuedIDs; issued != 2*(turns+1) {
		t.Errorf("%d ids were given out in %d turns, want %d", issued, turns, 2*(turns+1))
	}
}
