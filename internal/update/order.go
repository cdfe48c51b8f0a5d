// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"

	"rollset.dev/rollset/internal/observed"
	"rollset.dev/rollset/internal/rank"
	"rollset.dev/rollset/internal/wanted"
)

// inOrder sorts the candidates: those first that are out of service for it already, then the broken before the healthy; of each, strays first, so that at most two revisions
// remain, then those that users named, then those not yet available. Among equals the user's priorities decide, then the
// order of the identity; last, pods that share a label are spread. Priorities say nothing about broken pods.
func inOrder(o *observed.Set, moves []wanted.Move) []wanted.Move {
	moves = slices.Clone(moves)
	class := rank.First(takenOutFirst, brokenFirst, strayFirst(o), specifiedFirst, unavailableFirst)
	compare := rank.First(class, prioritizedFirst(o.Priorities), byIdentity(o))
	slices.SortFunc(moves, func(a, b wanted.Move) int { return compare(a.Replica, b.Replica) })
	if len(o.Priorities.Scatter) > 0 {
		scatterClasses(moves, class, o.Priorities.Scatter)
	}
	return moves
}

func takenOutFirst(a, b *observed.Replica) int { return trueFirst(a.Updating, b.Updating) }

func brokenFirst(a, b *observed.Replica) int { return trueFirst(a.Broken(), b.Broken()) }

func specifiedFirst(a, b *observed.Replica) int { return trueFirst(a.Specified, b.Specified) }

func unavailableFirst(a, b *observed.Replica) int { return trueFirst(!a.Available, !b.Available) }

// strayFirst puts pods first that are at neither of the two revisions that may stay.
func strayFirst(o *observed.Set) rank.Compare {
	stray := func(r *observed.Replica) bool {
		return r.Revision != o.Current.Name && r.Revision != o.Update.Name
	}
	return func(a, b *observed.Replica) int { return trueFirst(stray(a), stray(b)) }
}

// byIdentity is the highest ordinal first, or the least useful pod first. Broken pods of an OrderedReady set go from the
// lowest, for that is the order in which their successors can come.
func byIdentity(o *observed.Set) rank.Compare {
	if !o.Ordinal() {
		return rank.LeastLoss(o)
	}
	return func(a, b *observed.Replica) int {
		if o.OrderedReady() && a.Broken() && b.Broken() {
			return rank.HighestFirst(b, a)
		}
		return rank.HighestFirst(a, b)
	}
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
