// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

// Budget is how many available pods may be given up.
type Budget struct {
	// Available is how many pods are available, without those that were spent.
	Available int
	// Floor is how many have to stay available.
	Floor int
}

// Budget returns the budget of a set in which the given number of pods must stay available.
func (s *Set) Budget(floor int) Budget { return Budget{Available: s.Available(), Floor: floor} }

// Doubts reports whether a pod is available, and not counted on, because it may be deleted already.
func (s *Set) Doubts(r *Replica) bool { return r.Available && s.MayBeDeleted(r.Pod) }

// Doubted returns the pods that are available, and not counted on.
func (s *Set) Doubted() (doubted []*Replica) {
	if len(s.Refusals) == 0 {
		return nil
	}
	for i := range s.Replicas {
		if r := &s.Replicas[i]; s.Doubts(r) {
			doubted = append(doubted, r)
		}
	}
	return doubted
}

// Spare reports whether an available pod may be given up.
func (b *Budget) Spare() bool { return b.Available > b.Floor }

// Allows reports whether a replica's active pod may be disturbed. A pod that is out of service costs nothing. A pod that is
// ready but not yet available counts as unavailable already: it may go if no more pods than allowed are unavailable with it.
func (b *Budget) Allows(r *Replica) bool {
	return r.OutOfService() || b.Spare() || !r.Available && b.Available == b.Floor
}

// Spend counts a pod that is disturbed.
func (b *Budget) Spend(r *Replica) {
	if r.Available {
		b.Available--
	}
}
