// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
)

// placeOf is the place of an id in the sequence of a set with random names; -1 if it has none.
func (v *view) placeOf(id string) int {
	if v.set.Spec.PodIdentity == v1alpha1.OrdinalIdentity {
		return -1
	}
	return identity.NewSequence(v.set.UID).PlaceOf(id)
}

// issued is how many ids the set has given out: as many as its status says, or as were seen earlier or are seen now, also
// those of pods that came and went between two looks. It notes when the cache has shown all of them.
func (v *view) issued(o *snapshot.Set) int {
	if o.Ordinal() {
		return 0
	}
	gone := map[int]bool{}
	for _, pod := range v.gone {
		id, _ := identify(v.set, pod)
		gone[v.placeOf(id)] = true
	}
	places := func(yield func(int) bool) {
		for i := range o.Replicas {
			delete(gone, o.Replicas[i].Place)
			if !yield(o.Replicas[i].Place) {
				return
			}
		}
		for place := range gone {
			if !yield(place) {
				return
			}
		}
	}
	m := v.memory
	m.issued = identity.Issued(max(int(v.set.Status.IssuedIDs), m.issued), places)
	if identity.Covers(m.shown, m.issued, places) {
		m.shown = m.issued
	}
	return m.issued
}
