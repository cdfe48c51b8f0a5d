// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import "fmt"

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
