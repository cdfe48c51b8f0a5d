// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
)

// placeOf returns the place of an id in the sequence of a set with random names; -1 if it has none.
func placeOf(set *v1beta1.RollSet, id string) int {
	if set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		return -1
	}
	return identity.NewSequence(set.UID).PlaceOf(id)
}

// issued returns how many ids the set has given out: the largest of the number in its status and those seen earlier and now,
// including pods that came and went between two looks. It records when the cache has shown all of them.
func (o *observer) issued() int {
	if o.snap.Ordinal() {
		return 0
	}
	gone := map[int]bool{}
	for _, pod := range o.Gone {
		id, _ := Identify(o.Set, pod)
		gone[placeOf(o.Set, id)] = true
	}
	places := func(yield func(int) bool) {
		for i := range o.snap.Replicas {
			delete(gone, o.snap.Replicas[i].Place)
			if !yield(o.snap.Replicas[i].Place) {
				return
			}
		}
		for place := range gone {
			if !yield(place) {
				return
			}
		}
	}
	m := o.memory
	m.issued = identity.Issued(m.known(o.Set), places)
	if identity.Covers(m.shown, m.issued, places) {
		m.shown = m.issued
	}
	return m.issued
}

// known returns how many ids the set has given out, according to its status and this memory.
func (m *Memory) known(set *v1beta1.RollSet) int { return max(int(set.Status.IssuedIDs), m.issued) }

// Unshown returns how many ids the set has given out, and up to which of them the cache has shown all pods, if these are
// fewer.
func (m *Memory) Unshown(set *v1beta1.RollSet) (issued, shown int, some bool) {
	told := m.known(set)
	return told, m.shown, m.shown < told
}

// Shown records that the pods of all issued ids are accounted for.
func (m *Memory) Shown(set *v1beta1.RollSet) { m.shown = m.known(set) }
