// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// TestInvalidReserve reserves ordinals that no pod can have, as an object may that validation never saw. Nothing is done.
func TestInvalidReserve(t *testing.T) {
	t.Parallel()
	w := played(t, "identity Ordinal\nreplicas 1\nsettle\nreserve 0-2147483648\nsettle")
	if pod := w.podNamed("0"); pod == nil || !invariants.IsActive(pod) {
		t.Errorf("the pod is gone:\n%s", w.Film)
	}
}
