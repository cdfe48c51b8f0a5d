// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"rollset.dev/rollset/internal/model/identity"
)

func reserve(entries ...any) []intstr.IntOrString {
	reserved := make([]intstr.IntOrString, 0, len(entries))
	for _, e := range entries {
		switch e := e.(type) {
		case int:
			reserved = append(reserved, intstr.FromInt32(int32(e)))
		case string:
			reserved = append(reserved, intstr.FromString(e))
		}
	}
	return reserved
}

func TestOrdinals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		start     int32
		reserved  []intstr.IntOrString
		wantFirst []int
		wantLen   int
	}{
		"nothing reserved": {
			wantFirst: []int{0, 1, 2, 3},
			wantLen:   math.MaxInt32 + 1,
		},
		"a start": {
			start:     7,
			wantFirst: []int{7, 8, 9},
			wantLen:   math.MaxInt32 + 1 - 7,
		},
		"numbers and ranges in any order": {
			reserved:  reserve("7-8", 1, "3-4"),
			wantFirst: []int{0, 2, 5, 6, 9, 10},
			wantLen:   math.MaxInt32 + 1 - 5,
		},
		"ranges that overlap, touch and lie in one another": {
			reserved:  reserve("1-5", "2-3", "5-6", "7-8", 8, 10),
			wantFirst: []int{0, 9, 11},
			wantLen:   math.MaxInt32 + 1 - 9,
		},
		"reserved below the start does not count": {
			start:     10,
			reserved:  reserve(3, "4-5", "8-11", 13),
			wantFirst: []int{12, 14, 15},
			wantLen:   math.MaxInt32 + 1 - 10 - 3,
		},
		"the start is reserved": {
			reserved:  reserve(0),
			wantFirst: []int{1, 2},
			wantLen:   math.MaxInt32,
		},
		"all but the last": {
			reserved:  reserve("0-2147483646"),
			wantFirst: []int{math.MaxInt32, -1, -1},
			wantLen:   1,
		},
		"all": {
			reserved:  reserve("0-2147483647"),
			wantFirst: []int{-1, -1},
			wantLen:   0,
		},
		"the highest start": {
			start:     math.MaxInt32,
			wantFirst: []int{math.MaxInt32, -1},
			wantLen:   1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := identity.NewOrdinals(tc.start, tc.reserved)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]int, len(tc.wantFirst))
			for k := range got {
				got[k] = o.At(k)
			}
			if diff := cmp.Diff(tc.wantFirst, got); diff != "" {
				t.Errorf("first ordinals (-want +got):\n%s", diff)
			}
			if o.Len() != tc.wantLen {
				t.Errorf("Len() = %d, want %d", o.Len(), tc.wantLen)
			}
			if got := o.At(-1); got != -1 {
				t.Errorf("At(-1) = %d, want -1", got)
			}
			if got := o.At(o.Len()); got != -1 {
				t.Errorf("At(Len()) = %d, want -1", got)
			}
			if got := o.At(math.MaxInt); got != -1 {
				t.Errorf("At(MaxInt) = %d, want -1", got)
			}
		})
	}
}

func TestOrdinalsRank(t *testing.T) {
	t.Parallel()
	o, err := identity.NewOrdinals(2, reserve("4-5", 9))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		ordinal    int
		wantRank   int
		wantUsable bool
	}{
		"negative":                {ordinal: -1},
		"the lowest integer":      {ordinal: math.MinInt},
		"below the start":         {ordinal: 1},
		"the start":               {ordinal: 2, wantRank: 0, wantUsable: true},
		"before a range":          {ordinal: 3, wantRank: 1, wantUsable: true},
		"reserved, first":         {ordinal: 4, wantRank: 2},
		"reserved, last":          {ordinal: 5, wantRank: 2},
		"behind a range":          {ordinal: 6, wantRank: 2, wantUsable: true},
		"reserved, alone":         {ordinal: 9, wantRank: 5},
		"behind all":              {ordinal: 10, wantRank: 5, wantUsable: true},
		"the highest ordinal":     {ordinal: math.MaxInt32, wantRank: math.MaxInt32 - 5, wantUsable: true},
		"beyond the last ordinal": {ordinal: math.MaxInt32 + 1, wantRank: math.MaxInt32 - 4},
		"the highest integer":     {ordinal: math.MaxInt, wantRank: math.MaxInt32 - 4},
		"somewhere in the wide":   {ordinal: 1_000_000, wantRank: 1_000_000 - 5, wantUsable: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rank, usable := o.Rank(tc.ordinal)
			if rank != tc.wantRank || usable != tc.wantUsable {
				t.Errorf("Rank(%d) = %d, %v; want %d, %v", tc.ordinal, rank, usable, tc.wantRank, tc.wantUsable)
			}
		})
	}
}

func TestNewOrdinalsRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		start    int32
		reserved []intstr.IntOrString
		want     string
	}{
		"a negative start": {start: -1, want: "ordinals.start: -1 is negative"},
		"a negative number": {
			reserved: reserve(1, -3),
			want:     "reserveOrdinals[1]: -3 is negative",
		},
		"a range that ends before it starts": {
			reserved: reserve("5-3"),
			want:     `reserveOrdinals[0]: "5-3" ends before it starts`,
		},
		"what is no range": {
			reserved: reserve("", "3", "-", "3-", "-3", "a-b", "1-2-3", " 1-2", "+1-2", "0-2147483648"),
			want: `reserveOrdinals[0]: "" is neither an ordinal nor a range such as "3-5"
reserveOrdinals[1]: "3" is neither an ordinal nor a range such as "3-5"
reserveOrdinals[2]: "-" is neither an ordinal nor a range such as "3-5"
reserveOrdinals[3]: "3-" is neither an ordinal nor a range such as "3-5"
reserveOrdinals[4]: "-3" is neither an ordinal nor a range such as "3-5"
reserveOrdinals[5]: "a-b" is neither an ordinal nor a range such as "3-5"
reserveOrdinals[6]: "1-2-3" is neither an ordinal nor a range such as "3-5"
reserveOrdinals[7]: " 1-2" is neither an ordinal nor a range such as "3-5"
reserveOrdinals[8]: "+1-2" is neither an ordinal nor a range such as "3-5"
reserveOrdinals[9]: "0-2147483648" is neither an ordinal nor a range such as "3-5"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := identity.NewOrdinals(tc.start, tc.reserved)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrdinalsAgainstList compares with the obvious implementation, which lists all ordinals.
func TestOrdinalsAgainstList(t *testing.T) {
	t.Parallel()
	const end = 120
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int32Range(0, 20).Draw(t, "start")
		var reserved []intstr.IntOrString
		isReserved := make(map[int]bool)
		for range rapid.IntRange(0, 12).Draw(t, "ranges") {
			first := rapid.IntRange(0, 90).Draw(t, "first")
			last := first + rapid.IntRange(0, 9).Draw(t, "more")
			entry := intstr.FromString(fmt.Sprintf("%d-%d", first, last))
			if first == last {
				entry = intstr.FromInt32(int32(first))
			}
			reserved = append(reserved, entry)
			for n := first; n <= last; n++ {
				isReserved[n] = true
			}
		}
		before := slices.Clone(reserved)
		o, err := identity.NewOrdinals(start, reserved)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, reserved); diff != "" {
			t.Fatalf("the argument was changed (-before +after):\n%s", diff)
		}
		k := 0
		for n := range end {
			rank, usable := o.Rank(n)
			wantUsable := n >= int(start) && !isReserved[n]
			if rank != k || usable != wantUsable {
				t.Fatalf("Rank(%d) = %d, %v; want %d, %v", n, rank, usable, k, wantUsable)
			}
			if !usable {
				continue
			}
			if got := o.At(k); got != n {
				t.Fatalf("At(%d) = %d, want %d", k, got, n)
			}
			k++
		}
		if want := math.MaxInt32 + 1 - (end - k); o.Len() != want {
			t.Fatalf("Len() = %d, want %d", o.Len(), want)
		}
	})
}

// TestOrdinalsRoundTrip walks the whole range of ordinals.
func TestOrdinalsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ordinal := rapid.Int32Range(0, math.MaxInt32)
		var reserved []intstr.IntOrString
		for range rapid.IntRange(0, 8).Draw(t, "ranges") {
			a, b := ordinal.Draw(t, "a"), ordinal.Draw(t, "b")
			reserved = append(reserved, intstr.FromString(fmt.Sprintf("%d-%d", min(a, b), max(a, b))))
		}
		o, err := identity.NewOrdinals(ordinal.Draw(t, "start"), reserved)
		if err != nil {
			t.Fatal(err)
		}
		n := int(ordinal.Draw(t, "ordinal"))
		rank, usable := o.Rank(n)
		if usable && o.At(rank) != n {
			t.Fatalf("At(Rank(%d) = %d) = %d", n, rank, o.At(rank))
		}
		if !usable && rank < o.Len() && n >= o.At(0) && o.At(rank) <= n {
			t.Fatalf("%d is not usable, but the usable ordinal after it is %d", n, o.At(rank))
		}
	})
}
