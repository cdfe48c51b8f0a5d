// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"runtime"
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

func TestGrowth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		live         uint64
		normal, want int
	}{
		"a small heap":           {live: 40 << 20, normal: 100, want: 100},
		"a large one":            {live: 90 << 20, normal: 100, want: 40},
		"one that is kept small": {live: 90 << 20, normal: 20, want: 20},
		"one that may be larger": {live: 90 << 20, normal: 200, want: 200},
		"one without a limit":    {live: 90 << 20, normal: -1, want: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := growth(c.live, c.normal); got != c.want {
				t.Errorf("it may grow by %d%%, want %d%%", got, c.want)
			}
		})
	}
}

var kept []byte

func TestRead(t *testing.T) {
	const name = "/gc/heap/allocs:bytes"
	before := read(name)
	kept = make([]byte, 1<<20)
	if grown := read(name) - before; grown < 1<<20 {
		t.Errorf("a megabyte was allocated, %d bytes were counted", grown)
	}
	runtime.GC()
	if live := read("/gc/heap/live:bytes"); live < 1<<20 {
		t.Errorf("a megabyte is in use, %d bytes were found", live)
	}
	runtime.KeepAlive(kept)
}
