// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"iter"
	"slices"
)

// jump is the largest distance between an id of a set and all others of the set: more ids than are issued between two writes
// of a status. An adopted pod may have an id from the sequence of another set, which can be anywhere.
const jump = 2048

// Issued returns how many ids of its sequence a set has given out. known is the recorded count, and places has the place in the
// sequence of each id of its pods and claims. The next id is the one at the returned place. A place that is too far ahead to be
// the set's own does not count; −1 is no place. After the end of the sequence the count goes on, and the sequence starts again.
func Issued(known int, places iter.Seq[int]) int {
	var ahead []int
	for place := range places {
		if distance := distance(known, place); place >= 0 && distance < IDs/2 {
			ahead = append(ahead, distance+1)
		}
	}
	slices.Sort(ahead)
	far := 0
	for _, distance := range ahead {
		if distance > far+jump {
			break
		}
		far = distance
	}
	return known + far
}

// Covers reports whether the places are exactly those from one count of ids to another.
func Covers(from, to int, places iter.Seq[int]) bool {
	missing := to - from
	for place := range places {
		if place >= 0 && distance(from, place) < to-from {
			missing--
		}
	}
	return missing <= 0
}

// distance returns how far a place is behind a count of ids, in a sequence that starts again after its end.
func distance(count, place int) int { return ((place-count)%IDs + IDs) % IDs }
