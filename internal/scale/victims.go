// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"slices"

	"rollset.dev/rollset/internal/action"
	"rollset.dev/rollset/internal/observed"
	"rollset.dev/rollset/internal/rank"
	"rollset.dev/rollset/internal/wanted"
)

// removeVictims deletes the surplus of a set with random names. Pods that are not available are free to go; of the
// available ones as many may go as there are above spec.replicas, so that a scale-down in the middle of a bad rollout
// takes the bad pods although the good ones are at the old revision. What a user named goes whatever it is.
func removeVictims(o *observed.Set, w *wanted.State, p *action.Plan) {
	spare := max(0, o.Available()-o.Limits.Replicas)
	left := w.Surplus
	why := fmt.Sprintf("scale down to %d", o.Limits.Replicas+w.Surge)
	for _, r := range victims(o, w) {
		if left == 0 {
			return
		}
		if r.Available && !r.Specified {
			if spare == 0 {
				continue
			}
			spare--
		}
		left--
		p.Add(action.Delete{Pod: r.Pod, Cause: action.ScaleDown, Reason: why})
	}
}

// victims are the live pods in the order in which they are to go: those that a user named, those of which their revision
// has too many, and then the least useful.
func victims(o *observed.Set, w *wanted.State) []*observed.Replica {
	live := make([]*observed.Replica, 0, len(o.Replicas))
	for i := range o.Replicas {
		if o.Replicas[i].Live() {
			live = append(live, &o.Replicas[i])
		}
	}
	slices.SortFunc(live, rank.LeastLoss(o))

	var named, tooMany, others []*observed.Replica
	excess := map[string]int{}
	for _, r := range live {
		switch {
		case r.Specified:
			named = append(named, r)
			excess[r.Revision]++
		case excess[r.Revision] < w.Excess[r.Revision]:
			tooMany = append(tooMany, r)
			excess[r.Revision]++
		default:
			others = append(others, r)
		}
	}
	return slices.Concat(named, tooMany, others)
}
