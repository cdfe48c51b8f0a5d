// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuiet(t *testing.T) {
	t.Parallel()
	var w watch
	var got []bool
	for _, megabytes := range []uint64{100, 101, 102, 200, 300, 301, 302, 303} {
		got = append(got, w.quiet(megabytes<<20))
	}
	want := []bool{false, true, false, false, false, true, false, false} // once whenever work has ended
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gives back (-want +got):\n%s", diff)
	}
}

var kept []byte

func TestAllocated(t *testing.T) {
	before := allocated()
	kept = make([]byte, 1<<20)
	if grown := allocated() - before; grown < 1<<20 {
		t.Errorf("a megabyte was allocated, %d bytes were counted", grown)
	}
}
