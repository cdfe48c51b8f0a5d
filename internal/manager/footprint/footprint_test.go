// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package footprint

import (
	"context"
	"math"
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
		live       uint64
		most, want int
	}{
		"nothing yet":                  {live: 0, most: math.MaxInt, want: 6400},
		"a small heap at work":         {live: 20 << 20, most: math.MaxInt, want: 320},
		"a small heap at rest":         {live: 20 << 20, most: goPercent, want: 100},
		"one of middling size at work": {live: 80 << 20, most: math.MaxInt, want: 80},
		"one of middling size at rest": {live: 80 << 20, most: goPercent, want: 80},
		"a large one at work":          {live: 300 << 20, most: math.MaxInt, want: 30},
		"a large one at rest":          {live: 300 << 20, most: goPercent, want: 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := growth(c.live, c.most); got != c.want {
				t.Errorf("it may grow by %d%%, want %d%%", got, c.want)
			}
		})
	}
}

func TestAfterEachCollection(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	collected := make(chan struct{}, 100)
	afterEachCollection(ctx, func() { collected <- struct{}{} })
	for range 3 { // repeatedly, not once
		runtime.GC()
		<-collected
	}
	cancel()
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
