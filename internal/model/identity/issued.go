// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"iter"
	"slices"
)

// jump is how far ahead of all other ids of a set one of its own can be: more than are made between two writes of a status.
// A pod that was adopted may have an id from the sequence of another set, which is anywhere.
const jump = 2048

// Issued returns how many ids of its sequence a set has given out, if it is known to have given out as many as known and has
// pods or claims with ids at the given places: the next id is the one at that place. A place that is too far ahead to be
// the set's own does not count; −1 is no place. The count goes on behind the end of the sequence, which then begins again.
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

// Covers reports whether different places are all those from one count of ids to another.
func Covers(from, to int, places iter.Seq[int]) bool {
	missing := to - from
	for place := range places {
		if place >= 0 && distance(from, place) < to-from {
			missing--
		}
	}
	return missing <= 0
}

// distance is how far a place is behind a count of ids, in a sequence that begins again behind its end.
func distance(count, place int) int { return ((place-count)%IDs + IDs) % IDs }
