// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"runtime/debug"
	"testing"
)

// TestMain lets garbage pile up. A world lives for milliseconds and leaves megabytes behind: collecting at every few of
// them would cost a quarter of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	m.Run()
}
