// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"maps"
	"slices"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/rank"
	"rollset.dev/rollset/internal/model/snapshot"
)

// removeVictims deletes the surplus of a set with random names. Unavailable pods are deleted freely. Of the available pods,
// only those above spec.replicas are deleted, so that a scale-down during a bad rollout takes the bad pods although the good
// ones are at the old revision. Pods that a user named are deleted in any case. Surge that is no longer needed is deleted by
// itself, and no other pod in its place; if a user named it, it still stands in for pods that are not available.
func removeVictims(o *snapshot.Set, w *desired.State, p *action.Plan) {
	v, all := victims{set: o, spare: o.Available() - o.Limits.Replicas}, ranked(o, w)
	why := fmt.Sprintf("scale down to %d", o.Active()-w.SurplusSurge-w.Surplus)
	left := w.Surplus - v.take(all.named, w.Surplus, why, p)
	surge := all.surge[:min(w.SurplusSurge, len(all.surge))]
	v.take(surge, len(surge), "the rollout needs no more surge", p)
	if o.Rolling() && o.Paused() && !o.GivesBack() {
		surge, all.others = splitSurge(o, all.others, min(left, o.Limits.MaxSurge-w.Surge))
		v.take(surge, len(surge), why, p)
		left -= len(surge) // those that cannot go now stay: no old pod goes in their place
	}
	v.take(slices.Concat(all.tooMany, all.others), left, why, p)
}

// victims collects the pods that a scale-down deletes.
type victims struct {
	set *snapshot.Set
	// spare is how many available pods may still be deleted.
	spare int
}

// take deletes up to n of the pods, and returns how many it deleted.
func (v *victims) take(from []*snapshot.Replica, n int, why string, p *action.Plan) int {
	taken := 0
	for _, r := range from {
		if taken == n {
			break
		}
		if v.serves(r) {
			if r.Surge && r.ToReplace() {
				p.Hold(action.HeldByBudget, r.Pod.Name, "it is to be deleted when enough other pods are available")
			}
			continue
		}
		if r.Available {
			v.spare--
		}
		taken++
		p.Add(action.Delete{Pod: r.Pod, Cause: action.ScaleDown, Reason: why})
	}
	return taken
}

// serves reports whether a pod must stay because too few others are available. Ready surge must, because it may become
// available next, but not if no pod is created before it is gone.
func (v *victims) serves(r *snapshot.Replica) bool {
	if !r.Surge {
		return r.Available && !r.Specified && v.spare <= 0
	}
	return r.Ready && !desired.IsOld(v.set, r) && (v.spare < 0 || r.Available && v.spare == 0)
}

// ranking holds the active pods of a set, the least useful first: surge pods to be deleted again, pods that a user named,
// surplus pods of their revision, and the others.
type ranking struct{ surge, named, tooMany, others []*snapshot.Replica }

func ranked(o *snapshot.Set, w *desired.State) (all ranking) {
	active := make([]*snapshot.Replica, 0, len(o.Replicas))
	for i := range o.Replicas {
		if o.Replicas[i].Active() {
			active = append(active, &o.Replicas[i])
		}
	}
	rank.SortByLoss(o, active)

	excess := maps.Clone(w.Excess)
	for _, r := range active {
		switch {
		case r.Surge:
			all.surge = append(all.surge, r)
		case r.Specified, r.State == v1alpha1.LifecyclePreparingDelete: // a pod that is already being prepared is not swapped for another
			all.named = append(all.named, r)
		case excess[r.Revision] > 0 && r.Leaving == "": // a pod that leaves is not counted in the excess
			all.tooMany = append(all.tooMany, r)
			excess[r.Revision]--
		default:
			all.others = append(all.others, r)
		}
	}
	slices.SortStableFunc(all.surge, func(a, b *snapshot.Replica) int { return useOf(o, w, a) - useOf(o, w, b) })
	return all
}

// useOf orders surge: first what is being deleted already, then what is no longer needed.
func useOf(o *snapshot.Set, w *desired.State, r *snapshot.Replica) int {
	switch {
	case r.State == v1alpha1.LifecyclePreparingDelete:
		return 0
	case w.Spent(o, r):
		return 1
	default:
		return 2
	}
}

// splitSurge separates the pods, n at most, that may be there as surge for a rollout that was paused: new ones, the least
// useful first.
func splitSurge(o *snapshot.Set, pods []*snapshot.Replica, n int) (surge, rest []*snapshot.Replica) {
	for _, r := range pods {
		if r.Revision == o.Update.Name && len(surge) < n {
			surge = append(surge, r)
		} else {
			rest = append(rest, r)
		}
	}
	return surge, rest
}
