// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"fmt"

	"rollset.dev/rollset/internal/model/snapshot"
)

// spentOn returns what has used up the budget: the first pod that is not available, or is about to be moved, and the number
// of the others, including missing ones. It is empty if maxUnavailable leaves no budget to spend.
func (b *budget) spentOn() string {
	short := b.snap.Limits.Replicas - b.members()
	first := b.firstUnavailable()
	switch {
	case short <= 0:
		return ""
	case first == "":
		return fmt.Sprintf(", %d missing", short)
	case short == 1:
		return ", " + first + " is not"
	default:
		return fmt.Sprintf(", %s and %d more are not", first, short-1)
	}
}

func (b *budget) firstUnavailable() string {
	if b.moved != "" {
		return b.moved
	}
	for r := range b.snap.Unsteady() {
		if r.Active() && !r.Available {
			return r.Pod.Name
		}
	}
	return ""
}

// doubt takes the pods into account that may be deleted already.
func (b *budget) doubt() {
	for _, r := range b.snap.Doubted() {
		if !b.state.Goes(r) {
			b.Spend(r)
			b.moved = cmp.Or(b.moved, r.Pod.Name)
		}
	}
}

// allows reports whether a pod may be disturbed. One that may be deleted already was spent, and is spent once only. One that serves
// although it is not known which image it runs may be, if enough other pods serve.
func (b *budget) allows(r *snapshot.Replica) bool {
	if r.ServesUnproven() {
		return b.Available+b.serving > b.Floor
	}
	own := b.Budget
	if b.snap.Doubts(r) {
		own.Available++
	}
	return own.Allows(r)
}
