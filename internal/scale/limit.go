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
// It never limits replacements. A rollout takes no more pods than maxUnavailable and maxSurge allow, and a place that it
// emptied looks like one that never had a pod. So while a rollout is under way, as many places may be filled. A pod that a
// user named, or whose node leaves, is replaced as long as it is still seen terminating.
type limit struct {
	set *snapshot.Set
	// most is how many pods of a revision may be unavailable; negative means no limit.
	most int
	// unavailable counts, by revision, the pods that stay and those that this plan creates. It does not count pods to be
	// replaced, because a broken pod could block its own replacement.
	unavailable map[string]int
}

func newLimit(o *snapshot.Set, w *desired.State) limit {
	l := limit{set: o, most: o.Limits.ScaleMaxUnavailable, unavailable: map[string]int{}}
	if l.most < 0 {
		return l
	}
	if o.Rolling() {
		l.most = max(l.most, o.Limits.MaxUnavailable+o.Limits.MaxSurge)
	}
	for i := range o.Replicas {
		switch r := &o.Replicas[i]; {
		case r.Terminating && r.ToReplace():
			l.most++
		case r.Active() && !r.Available && !r.ToReplace() && w.Stays(o, r):
			l.unavailable[r.Revision]++
		}
	}
	return l
}

// holds reports whether the limit holds a place. If it does not, the place is counted.
func (l *limit) holds(place desired.Place, p *action.Plan) bool {
	if l.most < 0 {
		return false
	}
	if l.unavailable[place.Revision] >= l.most {
		p.HoldBecause(action.HeldByLimit, l.set.PodName(place.ID), func() string {
			return fmt.Sprintf("scaleStrategy.maxUnavailable: %d pods may be unavailable while pods are created", l.most)
		})
		return true
	}
	l.unavailable[place.Revision]++
	return false
}
