// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Ordinals are the usable ordinals of a set in ascending order: all from the start to 2³¹−1 that are not reserved. It
// holds the reserved ranges only, so its size does not depend on the number of replicas. The zero value holds no
// reserved ordinal and starts at 0.
type Ordinals struct {
	start int64
	// reserved is sorted; its ranges lie between start and maxOrdinal and neither overlap nor touch.
	reserved []span
}

// span is a range of reserved ordinals, both ends included.
type span struct {
	first, last int64
	// before is how many ordinals from start are reserved below first.
	before int64
}

func (s span) size() int64 { return s.last - s.first + 1 }

// NewOrdinals returns the ordinals from start, at least 0, that reserved does not list as a number ("3") or a range
// ("3-5", both ends included). The error names every entry that is neither, or whose ends are in the wrong order.
func NewOrdinals(start int32, reserved []intstr.IntOrString) (Ordinals, error) {
	if start < 0 {
		return Ordinals{}, fmt.Errorf("ordinals.start: %d is negative", start)
	}
	spans := make([]span, 0, len(reserved))
	var errs []error
	for i, entry := range reserved {
		s, err := parseSpan(entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("reserveOrdinals[%d]: %w", i, err))
			continue
		}
		if s.last >= int64(start) {
			s.first = max(s.first, int64(start))
			spans = append(spans, s)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Ordinals{}, err
	}
	return Ordinals{start: int64(start), reserved: merge(spans)}, nil
}

// parseSpan reads an entry of reserveOrdinals.
func parseSpan(entry intstr.IntOrString) (span, error) {
	if entry.Type == intstr.Int {
		if entry.IntVal < 0 {
			return span{}, fmt.Errorf("%d is negative", entry.IntVal)
		}
		return span{first: int64(entry.IntVal), last: int64(entry.IntVal)}, nil
	}
	low, high, isRange := strings.Cut(entry.StrVal, "-")
	first, errFirst := strconv.ParseUint(low, 10, 31)
	last, errLast := strconv.ParseUint(high, 10, 31)
	if !isRange || errFirst != nil || errLast != nil {
		return span{}, fmt.Errorf("%q is neither an ordinal nor a range such as \"3-5\"", entry.StrVal)
	}
	if first > last {
		return span{}, fmt.Errorf("%q ends before it starts", entry.StrVal)
	}
	return span{first: int64(first), last: int64(last)}, nil
}

// merge sorts ranges, joins those that overlap or touch, and counts what is reserved below each.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	merged := spans[:0]
	for _, s := range spans {
		if n := len(merged); n > 0 && s.first <= merged[n-1].last+1 {
			merged[n-1].last = max(merged[n-1].last, s.last)
			continue
		}
		merged = append(merged, s)
	}
	var before int64
	for i := range merged {
		merged[i].before = before
		before += merged[i].size()
	}
	return merged
}

// usableBelow returns how many usable ordinals lie below a range.
func (o Ordinals) usableBelow(s span) int64 { return s.first - o.start - s.before }

// Len returns the number of usable ordinals, between 0 and 2³¹. A set cannot have more pods than that, whatever its replicas
// say.
func (o Ordinals) Len() int {
	n := maxOrdinal + 1 - o.start
	for _, s := range o.reserved {
		n -= s.size()
	}
	return int(n)
}

// At returns the k-th usable ordinal, counted from 0, or -1 if k is not between 0 and Len()−1. It takes O(log n) of n
// reserved ranges.
func (o Ordinals) At(k int) int {
	if k < 0 || k > maxOrdinal {
		return -1
	}
	// All ranges with at most k usable ordinals below them lie below the k-th one.
	i, _ := slices.BinarySearchFunc(o.reserved, int64(k), func(s span, k int64) int {
		if o.usableBelow(s) <= k {
			return -1
		}
		return 1
	})
	ordinal := o.start + int64(k)
	if i > 0 {
		ordinal += o.reserved[i-1].before + o.reserved[i-1].size()
	}
	if ordinal > maxOrdinal {
		return -1
	}
	return int(ordinal)
}

// Rank returns how many usable ordinals are smaller than the given one, and whether it is usable itself: then
// At(rank) is the ordinal again, and it belongs to a set of R pods if rank < R. It takes O(log n) of n reserved ranges.
func (o Ordinals) Rank(ordinal int) (rank int, usable bool) {
	n := int64(ordinal)
	if n < o.start {
		return 0, false
	}
	if n > maxOrdinal {
		return o.Len(), false
	}
	i, found := slices.BinarySearchFunc(o.reserved, n, func(s span, n int64) int {
		switch {
		case s.last < n:
			return -1
		case s.first > n:
			return 1
		default:
			return 0
		}
	})
	if found {
		return int(o.usableBelow(o.reserved[i])), false
	}
	k := n - o.start
	if i > 0 {
		k -= o.reserved[i-1].before + o.reserved[i-1].size()
	}
	return int(k), true
}
