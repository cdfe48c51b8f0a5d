// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/rank"
	"rollset.dev/rollset/internal/model/snapshot"
)

// removeVictims deletes the surplus of a set with random names. Pods that are not available are free to go; of the
// available ones as many may go as there are above spec.replicas, so that a scale-down in the middle of a bad rollout
// takes the bad pods although the good ones are at the old revision. What a user named goes whatever it is.
func removeVictims(o *snapshot.Set, w *desired.State, p *action.Plan) {
	v := victims{
		spare: o.Available() - o.Limits.Replicas,
		why:   fmt.Sprintf("scale down to %d", o.Limits.Replicas+w.Surge),
	}
	named, tooMany, others := ranked(o, w)
	left := w.Surplus - v.take(named, w.Surplus, p)
	if o.Rolling() && (o.Paused() || o.Spec.UpdatePolicy() == v1alpha1.InPlaceOnlyPod) {
		var surge []*snapshot.Replica
		surge, others = splitSurge(o, others, min(left, o.Limits.MaxSurge-w.Surge))
		v.take(surge, len(surge), p)
		left -= len(surge) // those that cannot go now stay: no old pod goes in their place
	}
	v.take(slices.Concat(tooMany, others), left, p)
}

// victims are the pods that a scale-down takes.
type victims struct {
	// spare is how many available pods may still go.
	spare int
	why   string
}

// take deletes up to n of the pods, and returns how many.
func (v *victims) take(from []*snapshot.Replica, n int, p *action.Plan) int {
	taken := 0
	for _, r := range from {
		if taken == n {
			break
		}
		if r.Available && !r.Specified && v.spare <= 0 {
			continue
		}
		if r.Available {
			v.spare--
		}
		taken++
		p.Add(action.Delete{Pod: r.Pod, Cause: action.ScaleDown, Reason: v.why})
	}
	return taken
}

// ranked are the live pods, the least useful first: those that a user named, those of which their revision has too many,
// and the others.
func ranked(o *snapshot.Set, w *desired.State) (named, tooMany, others []*snapshot.Replica) {
	live := make([]*snapshot.Replica, 0, len(o.Replicas))
	for i := range o.Replicas {
		if o.Replicas[i].Live() {
			live = append(live, &o.Replicas[i])
		}
	}
	rank.SortByLoss(o, live)

	excess := maps.Clone(w.Excess)
	for _, r := range live {
		switch {
		case r.Specified, r.State == v1alpha1.LifecyclePreparingDelete: // what is being prepared is not given up for another
			named = append(named, r)
		case excess[r.Revision] > 0:
			tooMany = append(tooMany, r)
			excess[r.Revision]--
		default:
			others = append(others, r)
		}
	}
	return named, tooMany, others
}

// splitSurge takes out the pods, n at most, that may be there as surge for a rollout that was paused, or that changes all
// others in place: new ones, the least useful first, or if others were changed in place the youngest.
func splitSurge(o *snapshot.Set, pods []*snapshot.Replica, n int) (surge, rest []*snapshot.Replica) {
	for _, r := range pods {
		if r.Revision == o.Update.Name {
			surge = append(surge, r)
		}
	}
	if o.Spec.UpdatePolicy() == v1alpha1.InPlaceOnlyPod {
		slices.SortStableFunc(surge, func(a, b *snapshot.Replica) int {
			return cmp.Compare(b.Created, a.Created)
		})
	}
	surge = surge[:min(n, len(surge))]
	rest = slices.DeleteFunc(pods, func(r *snapshot.Replica) bool { return slices.Contains(surge, r) })
	return surge, rest
}
