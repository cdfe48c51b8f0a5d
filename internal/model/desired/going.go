// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"maps"
	"slices"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// choose chooses the pods of a set with random names that go: as many as are surplus, the surge pods that are no longer needed, and
// the stand-ins that are not, strays first. Unavailable pods go freely. Of the available pods, only those above spec.replicas go, so
// that a scale-down during a bad rollout takes the bad pods although the good ones are at the old revision. Pods that a user named go
// in any case. If a user named a surge pod, it still stands in for pods that are not available.
func choose(snap *snapshot.Set, s *State, standIns, surplus, extra int) {
	v := newChoice(snap, s)
	all := v.ranked()
	if standIns > 0 {
		s.Unneeded = v.take(all.standIns(snap), standIns)
		all.tooMany, all.others = slices.DeleteFunc(all.tooMany, s.Goes), slices.DeleteFunc(all.others, s.Goes)
	}
	left := surplus - v.take(all.named, surplus)
	v.take(all.surge[:min(extra, len(all.surge))], extra)
	if snap.Rolling() && snap.Paused() && !snap.GivesBack() {
		surge, others := splitSurge(snap, all.others, min(left, snap.Limits.MaxSurge-s.Surge))
		v.take(surge, len(surge))
		left -= len(surge) // those that cannot go now stay: no old pod goes in their place
		all.others = others
	}
	v.take(slices.Concat(all.tooMany, all.others), left)
	for _, r := range s.Going {
		if r.Surge || r.ToReplace() || s.Excess[r.Revision] == 0 {
			continue
		}
		if s.Excess[r.Revision]--; s.Excess[r.Revision] == 0 {
			delete(s.Excess, r.Revision)
		}
	}
}

// choice collects the pods that go.
type choice struct {
	snap  *snapshot.Set
	state *State
	// spare is how many available pods may still go.
	spare int
}

// newChoice returns a choice without a pod. A delete that was not answered may have happened, so its pod is not counted on.
func newChoice(snap *snapshot.Set, s *State) choice {
	return choice{snap: snap, state: s, spare: s.Available - snap.Limits.Replicas - len(snap.Doubted())}
}

// take sends up to n of the pods, and returns how many it sent.
func (v *choice) take(from []*snapshot.Replica, n int) int {
	taken := 0
	for _, r := range from {
		if taken == n {
			break
		}
		if v.serves(r) {
			continue
		}
		if r.Available {
			v.state.Available--
		}
		if r.Available && !v.snap.Doubts(r) {
			v.spare--
		}
		taken++
		v.state.send(r)
	}
	return taken
}

// serves reports whether a pod must stay because too few others are available. Surge that is not broken must, because
// it may become available next, but not if no pod is created before it is gone. Surge that a lifecycle hook has prepared is out of
// service. It comes back only if the limits are broken: an update that keeps within them would prepare it again after each pod.
func (v *choice) serves(r *snapshot.Replica) bool {
	spare := v.spare
	if v.snap.Doubts(r) { // it may serve all the same
		spare++
	}
	if r.State == v1beta1.LifecyclePreparingDelete {
		spare += v.snap.Limits.MaxUnavailable
	}
	if !r.Surge {
		return r.Available && !r.Specified && spare <= 0
	}
	return !r.Broken() && !IsOld(v.snap, r) && (spare < 0 || r.Available && spare == 0)
}

// ranking holds the active pods of a set, the least useful first: surge pods to be deleted again, pods that a user named,
// surplus pods of their revision, and the others.
type ranking struct{ surge, named, tooMany, others []*snapshot.Replica }

// standIns returns those of the last two that may stand in, strays first.
func (all ranking) standIns(snap *snapshot.Set) []*snapshot.Replica {
	var strays, updated []*snapshot.Replica
	mayStandIn := standIn(snap)
	for _, r := range slices.Concat(all.tooMany, all.others) {
		switch {
		case !mayStandIn(r):
		case r.Revision == snap.Update.Name:
			updated = append(updated, r)
		default:
			strays = append(strays, r)
		}
	}
	return append(strays, updated...)
}

func (v *choice) ranked() (all ranking) {
	active := make([]*snapshot.Replica, 0, len(v.snap.Replicas))
	for i := range v.snap.Replicas {
		if v.snap.Replicas[i].Active() {
			active = append(active, &v.snap.Replicas[i])
		}
	}
	SortByLoss(v.snap, active)

	excess := maps.Clone(v.state.Excess)
	for _, r := range active {
		switch {
		case r.Surge:
			all.surge = append(all.surge, r)
		case r.Specified, r.State == v1beta1.LifecyclePreparingDelete: // a pod that is already being prepared is not swapped for another
			all.named = append(all.named, r)
		case excess[r.Revision] > 0 && r.Leaving == "": // a pod that leaves is not counted in the excess
			all.tooMany = append(all.tooMany, r)
			excess[r.Revision]--
		default:
			all.others = append(all.others, r)
		}
	}
	slices.SortStableFunc(all.surge, func(a, b *snapshot.Replica) int { return v.useOf(a) - v.useOf(b) })
	return all
}

// useOf orders surge: first what is being deleted already, then what is no longer needed.
func (v *choice) useOf(r *snapshot.Replica) int {
	switch {
	case r.State == v1beta1.LifecyclePreparingDelete:
		return 0
	case v.state.Spent(v.snap, r):
		return 1
	default:
		return 2
	}
}

// splitSurge separates the pods, n at most, that may be there as surge for a rollout that was paused: new ones, the least
// useful first.
func splitSurge(snap *snapshot.Set, pods []*snapshot.Replica, n int) (surge, rest []*snapshot.Replica) {
	for _, r := range pods {
		if r.Revision == snap.Update.Name && len(surge) < n {
			surge = append(surge, r)
		} else {
			rest = append(rest, r)
		}
	}
	return surge, rest
}
