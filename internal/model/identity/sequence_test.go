// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"rollset.dev/rollset/internal/model/identity"
)

const uid = types.UID("5d0c9e5e-7d1c-4b5e-9a3f-2f8f4c5d6e7f")

// The names of pods are seen by users and must not change between versions: during an upgrade two versions work on the
// same set for a moment.
func TestSequenceIsStable(t *testing.T) {
	t.Parallel()
	s := identity.NewSequence(uid)
	var got []string
	for i := range 5 {
		got = append(got, s.At(i))
	}
	want := []string{"9grjh", "2v22z", "zrtfw", "7gxwl", "n5gl2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("first ids (-want +got):\n%s", diff)
	}
}

// TestSequenceIsPermutation asks for an id when none is free: each must be tried, and each once.
func TestSequenceIsPermutation(t *testing.T) {
	t.Parallel()
	s := identity.NewSequence(uid)
	tried := make([]bool, identity.IDs)
	count := 0
	free := s.Next(0, 1, func(id string) bool {
		number := 0
		for j := range len(id) {
			number = number*27 + strings.IndexByte("bcdfghjklmnpqrstvwxz2456789", id[j])
		}
		if len(id) != 5 || number < 0 || tried[number] {
			t.Fatalf("%q is no id, or comes twice", id)
		}
		tried[number] = true
		count++
		return true
	})
	if len(free) != 0 || count != identity.IDs {
		t.Errorf("tried %d ids, found %q free; want %d and none", count, free, identity.IDs)
	}
	if got := s.At(identity.IDs); got != s.At(0) {
		t.Errorf("At(IDs) = %q, want At(0) = %q", got, s.At(0))
	}
	if got := s.At(-1); got != s.At(identity.IDs-1) {
		t.Errorf("At(-1) = %q, want At(IDs-1) = %q", got, s.At(identity.IDs-1))
	}
}

// TestSequenceIsMixed compares how often each character occurs at every position of the id with how often it would at
// random.
func TestSequenceIsMixed(t *testing.T) {
	t.Parallel()
	const n = 27_000
	s := identity.NewSequence(uid)
	var counts [5]map[byte]int
	for j := range counts {
		counts[j] = make(map[byte]int)
	}
	for i := range n {
		id := s.At(i)
		for j := range counts {
			counts[j][id[j]]++
		}
	}
	for j, count := range counts {
		if len(count) != 27 {
			t.Errorf("place %d: %d different characters, want 27", j, len(count))
		}
		var chiSquare float64
		for _, c := range count {
			d := float64(c) - n/27
			chiSquare += d * d / (n / 27)
		}
		if chiSquare > 64.2 { // 26 degrees of freedom, exceeded at random once in 20,000
			t.Errorf("place %d: chi-square is %.1f", j, chiSquare)
		}
	}
}

func TestSequencesDiffer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-z0-9-]{0,20}`)
		uid1, uid2 := text.Draw(t, "uid1"), text.Draw(t, "uid2")
		if uid1 == uid2 {
			return
		}
		s1 := identity.NewSequence(types.UID(uid1))
		s2 := identity.NewSequence(types.UID(uid2))
		same := 0
		for i := range 20 {
			if s1.At(i) == s2.At(i) {
				same++
			}
		}
		if same > 2 {
			t.Fatalf("%d of the first 20 ids are equal", same)
		}
	})
}

func TestSequenceNext(t *testing.T) {
	t.Parallel()
	s := identity.NewSequence(uid)
	tests := map[string]struct {
		from  int
		n     int
		taken func(string) bool
		want  []string
	}{
		"from the start":      {n: 2, taken: in(), want: []string{s.At(0), s.At(1)}},
		"skips what is taken": {n: 3, taken: in(s.At(0), s.At(2)), want: []string{s.At(1), s.At(3), s.At(4)}},
		"from a place on":     {from: 7, n: 2, taken: in(s.At(0), s.At(8)), want: []string{s.At(7), s.At(9)}},
		"around the end":      {from: 3*identity.IDs - 1, n: 2, taken: in(), want: []string{s.At(-1), s.At(0)}},
		"none":                {n: 0, taken: in()},
		"a negative number":   {n: -1, taken: in()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, s.Next(tc.from, tc.n, tc.taken)); diff != "" {
				t.Errorf("Next (-want +got):\n%s", diff)
			}
		})
	}
}

func in(ids ...string) func(string) bool {
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return func(id string) bool { return set[id] }
}

func TestSequenceNextProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := identity.NewSequence(uid)
		var ids []string
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 60), 0, 40).Draw(t, "taken") {
			ids = append(ids, s.At(i))
		}
		taken, n := in(ids...), rapid.IntRange(0, 30).Draw(t, "n")
		from := rapid.SampledFrom([]int{0, 1, 30, identity.IDs - 2}).Draw(t, "from")
		got := s.Next(from, n, taken)
		if diff := cmp.Diff(got, s.Next(from, n, taken)); diff != "" {
			t.Fatalf("two calls differ:\n%s", diff)
		}
		seen := make(map[string]bool)
		for _, id := range got {
			if taken(id) || seen[id] {
				t.Fatalf("%q is taken or comes twice in %q", id, got)
			}
			seen[id] = true
		}
		if len(got) != n {
			t.Fatalf("%d ids, want %d", len(got), n)
		}
		// A caller that saw fewer of the taken ids chooses among the same names.
		if more := s.Next(from, n, func(id string) bool { return taken(id) || id == s.At(from) }); n > 1 && len(more) == n {
			for _, id := range more[:n-1] {
				if !seen[id] {
					t.Fatalf("%q is not among %q", id, got)
				}
			}
		}
	})
}

func BenchmarkSequenceNext(b *testing.B) {
	s := identity.NewSequence(uid)
	taken := make(map[string]bool)
	for i := range 10_000 {
		taken[s.At(i)] = true
	}
	for b.Loop() {
		if got := s.Next(0, 500, func(id string) bool { return taken[id] }); len(got) != 500 {
			b.Fatal(len(got))
		}
	}
}

func BenchmarkOrdinalsAt(b *testing.B) {
	entries := make([]any, 0, 1000)
	for i := range 1000 {
		entries = append(entries, 3*i)
	}
	o, err := identity.NewOrdinals(0, reserve(entries...))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		o.Rank(o.At(1500))
	}
}

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := identity.NewSequence(types.UID(rapid.StringMatching(`[a-f0-9-]{8,36}`).Draw(t, "uid")))
		place := rapid.IntRange(0, identity.IDs-1).Draw(t, "place")
		if got := s.PlaceOf(s.At(place)); got != place {
			t.Fatalf("PlaceOf(At(%d)) = %d", place, got)
		}
		if id := rapid.StringMatching(`[a-z0-9]{0,6}`).Draw(t, "id"); s.PlaceOf(id) >= 0 && s.At(s.PlaceOf(id)) != id {
			t.Fatalf("At(PlaceOf(%q)) = %q", id, s.At(s.PlaceOf(id)))
		}
	})
	const next = 3313534 // the permutation leads from here to IDs, the first number that is no place, and from there to an id
	if s := identity.NewSequence("u"); s.PlaceOf(s.At(next)) != next {
		t.Errorf("PlaceOf(At(%d)) = %d", next, s.PlaceOf(s.At(next)))
	}
}

func TestIssued(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		known  int
		places []int
		want   int
	}{
		"nothing":                              {},
		"the first ones":                       {places: []int{1, 0, 2}, want: 3},
		"one of those known":                   {known: 5, places: []int{3}, want: 5},
		"more than known":                      {known: 2, places: []int{0, 1, 2, 4}, want: 5},
		"many at once":                         {places: []int{2000, 4000, 0}, want: 4001},
		"an id of another sequence, far ahead": {known: 2, places: []int{1, 9_000_000, 70_000}, want: 2},
		"no id":                                {known: 2, places: []int{-1}, want: 2},
		"no id at the end":                     {known: identity.IDs - 1, places: []int{-1}, want: identity.IDs - 1},
		"around the end":                       {known: identity.IDs - 1, places: []int{identity.IDs - 1, 0}, want: identity.IDs + 1},
		"after the end":                        {known: identity.IDs + 7, places: []int{identity.IDs - 1, 6}, want: identity.IDs + 7},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := identity.Issued(tc.known, slices.Values(tc.places)); got != tc.want {
				t.Errorf("Issued() = %d, want %d", got, tc.want)
			}
		})
	}
}

// TestIssuedUpToHalf has ids all along the sequence. Those in its second half are behind the count.
func TestIssuedUpToHalf(t *testing.T) {
	t.Parallel()
	places, last := []int{identity.IDs / 2}, 0
	for ; last < identity.IDs/2; last += 2048 {
		places = append(places, last)
	}
	if got, want := identity.Issued(0, slices.Values(places)), last-2048+1; got != want {
		t.Errorf("Issued() = %d, want %d", got, want)
	}
}

func TestCovers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		from, to int
		places   []int
		want     bool
	}{
		"nothing to cover":              {from: 3, to: 3, want: true},
		"all":                           {to: 3, places: []int{2, 0, 1}, want: true},
		"the newest, but not all":       {to: 3, places: []int{2, 0}},
		"all that are new":              {from: 2, to: 4, places: []int{0, 3, 2}, want: true},
		"others, as many as are new":    {from: 2, to: 4, places: []int{0, 1, 9_000_000, -1}},
		"all around the end":            {from: identity.IDs - 1, to: identity.IDs + 1, places: []int{0, identity.IDs - 1}, want: true},
		"all but one around the end":    {from: identity.IDs - 1, to: identity.IDs + 1, places: []int{0}},
		"more than there are of places": {to: 1 << 40, places: []int{0, 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := identity.Covers(tc.from, tc.to, slices.Values(tc.places)); got != tc.want {
				t.Errorf("Covers() = %v", got)
			}
		})
	}
}
