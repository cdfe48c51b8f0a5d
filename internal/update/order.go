// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"slices"

	"rollset.dev/rollset/internal/observed"
	"rollset.dev/rollset/internal/rank"
	"rollset.dev/rollset/internal/wanted"
)

// candidate is a move and how urgent it is: the smaller, the sooner.
type candidate struct {
	wanted.Move

	class int
}

// inOrder sorts the candidates by urgency. Among equals the user's priorities decide, then the order of the identity;
// last, pods that share a label are spread. Priorities say nothing about broken pods.
func inOrder(o *observed.Set, moves []wanted.Move) []wanted.Move {
	sorted := make([]candidate, len(moves))
	for i, m := range moves {
		sorted[i] = candidate{Move: m, class: classOf(o, m.Replica)}
	}
	compare := byIdentity(o)
	if o.Priorities.Any() {
		compare = rank.First(prioritizedFirst(o.Priorities), compare)
	}
	slices.SortFunc(sorted, func(a, b candidate) int {
		if a.class != b.class {
			return a.class - b.class
		}
		return compare(a.Replica, b.Replica)
	})
	scatterClasses(sorted, o.Priorities.Scatter)
	moves = make([]wanted.Move, len(sorted))
	for i := range sorted {
		moves[i] = sorted[i].Move
	}
	return moves
}

// classOf is the urgency of moving a pod: those first that are out of service for it already; then the broken before the
// healthy; of each, strays first, so that at most two revisions remain; then those that users named; then those not yet
// available.
func classOf(o *observed.Set, r *observed.Replica) int {
	stray := r.Revision != o.Current.Name && r.Revision != o.Update.Name
	class := 0
	for _, sooner := range [...]bool{r.Updating, r.Broken(), stray, r.Specified, !r.Available} {
		class <<= 1
		if !sooner {
			class++
		}
	}
	return class
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
