// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity names pods: it returns the ordinals or random ids that a set uses.
//
// The rule: a name is a pure function of the set, and never depends on which objects exist. A set with ordinals uses the
// first ordinals from a start that are not reserved. A set with random names walks a fixed permutation of all ids, and skips
// those in use. So two controllers with different caches try the same names. They meet in AlreadyExists, and never create a
// pod too many.
package identity

import (
	"math"
	"strconv"
	"strings"
)

// PodName returns the name of the pod of an identity, whether it exists or not.
func PodName(set, id string) string { return set + "-" + id }

// ParseOrdinal returns the ordinal of a pod of a set: N, between 0 and 2³¹−1, if the name is "<set>-N". Only the canonical
// spelling counts, because web-7 and web-007 are two pods, and one identity must not have two.
func ParseOrdinal(set, podName string) (ordinal int, ok bool) {
	suffix, ok := suffixOf(set, podName)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(suffix, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != suffix {
		return 0, false
	}
	return int(n), true
}

// ParseID returns the random id of a pod of a set: the five characters after "<set>-", all from the alphabet of [Sequence].
func ParseID(set, podName string) (id string, ok bool) {
	suffix, ok := suffixOf(set, podName)
	if !ok || len(suffix) != idLength {
		return "", false
	}
	for i := range len(suffix) {
		if strings.IndexByte(alphabet, suffix[i]) < 0 {
			return "", false
		}
	}
	return suffix, true
}

func suffixOf(set, podName string) (string, bool) {
	rest, ok := strings.CutPrefix(podName, set)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(rest, "-")
}

// maxOrdinal is the highest ordinal that a pod can have: ordinals are int32 in the API.
const maxOrdinal = math.MaxInt32
