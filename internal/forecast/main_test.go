// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"runtime/debug"
	"testing"
)

// TestMain lets garbage pile up: what the tests make lives for milliseconds.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	m.Run()
}
