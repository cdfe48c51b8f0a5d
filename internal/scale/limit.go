// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// limit is scaleStrategy.maxUnavailable: how many pods may be unavailable while pods are created. It is counted for each
// revision separately, so that broken pods of one revision do not keep pods of another from being created.
//
// It limits only the creation of more pods than the set has had. A place below that number is empty because its pod was lost,
// named, or taken by a rollout, and is filled even if pods are unavailable. So is a place of surge, once no other is empty: surge
// belongs to a rollout, and maxSurge limits it.
type limit struct {
	snap *snapshot.Set
	// most is how many pods of a revision may be unavailable; negative means no limit.
	most int
	// taken counts the places that have a pod, or a terminating one that is replaced, or that this plan fills.
	taken int
	// unavailable counts, by revision, the pods that stay and those that this plan creates.
	unavailable map[string]int
}

func newLimit(snap *snapshot.Set, w *desired.State) limit {
	l := limit{snap: snap, most: snap.Limits.ScaleMaxUnavailable, taken: snap.Limits.Replicas - w.Missing, unavailable: map[string]int{}}
	if l.most < 0 {
		return l
	}
	for r := range snap.Unsteady() {
		switch {
		case r.Terminating && scaledDown(snap, r):
			l.taken--
		case r.Active() && !r.Available && !w.Goes(r):
			l.unavailable[r.Revision]++
		}
	}
	return l
}

// scaledDown reports whether a terminating pod in a place that is wanted again was deleted because spec.replicas was lowered.
// Its successor is no replacement. With random names such a pod has no place.
func scaledDown(snap *snapshot.Set, r *snapshot.Replica) bool {
	if !snap.Ordinal() {
		return false
	}
	place, used := snap.InUse(r.Ordinal)
	return used && place >= snap.Reached
}

// holds reports whether the limit holds a place. If it does not, the place is counted.
func (l *limit) holds(place desired.Place, p *action.Plan) bool {
	if l.most < 0 {
		return false
	}
	replaces := l.taken < l.snap.Reached || place.Surge && l.taken >= l.snap.Limits.Replicas
	if !replaces && l.unavailable[place.Revision] >= l.most {
		p.HoldBecause(action.HeldByLimit, func() (string, string) {
			return l.snap.PodName(place.ID), fmt.Sprintf("scaleStrategy.maxUnavailable: %d pods may be unavailable while pods are created", l.most)
		})
		return true
	}
	l.taken++
	l.unavailable[place.Revision]++
	return false
}
