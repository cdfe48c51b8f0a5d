// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity names pods: it says which ordinals, or which random ids, a set uses.
//
// The rule: a name is a pure function of the set, never of what happens to exist. Ordinal sets use the first ordinals
// from a start that are not reserved. Random sets walk a fixed permutation of all ids and skip those in use; two
// controllers with different views of the world therefore try the same names and can only meet in AlreadyExists, never
// make one pod too many.
package identity

import (
	"math"
	"strconv"
	"strings"
)

// PodName returns the name of the pod of an identity, whether it exists or not.
func PodName(set, id string) string { return set + "-" + id }

// ParseOrdinal returns the ordinal of the pod of a set: N, between 0 and 2³¹−1, if the name is "<set>-N". Only the
// canonical spelling counts, for web-7 and web-007 are two pods and one identity must not have two.
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

// ParseID returns the random id of the pod of a set: the five characters behind "<set>-", all of the alphabet of
// [Sequence].
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
