// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

// StandIns returns how many of the pods without a mark of surge are no members: those that the rollout could not have if it had no
// surge, and that may stand in. Otherwise a lost pod had no successor because of a bad template. Pods with a mark are part of maxSurge.
func StandIns(snap *snapshot.Set) int {
	if snap.GivesBack() || !guarded(snap) || yielded(snap, yieldsAt(snap)) {
		return 0
	}
	marked, updated, ready, strays, mayStandIn := 0, 0, snap.CountSteady()[snap.Update.Name], 0, standIn(snap)
	for r := range snap.Unsteady() {
		switch {
		case mayStandIn(r) && r.Revision == snap.Update.Name:
			updated++
		case mayStandIn(r):
			strays++
		case r.Active() && !r.Surge && r.Ready && r.Revision == snap.Update.Name:
			ready++
		case r.Surge && r.Pod != nil && !r.Terminating:
			marked++
		}
	}
	if p := partition(snap); p > 0 { // those above it move back
		updated = min(updated, max(0, snap.Limits.Replicas-p-ready))
	}
	return max(0, min(snap.Limits.MaxSurge-marked, strays+updated-snap.Limits.MaxUnavailable))
}

// standIn returns a function that reports whether a pod may stand in: it is at the update revision and not ready or, while no pod of
// that revision is available, a broken stray. One from which a policy takes the label of its revision may not: the policy makes a stray of
// each new pod.
func standIn(snap *snapshot.Set) func(*snapshot.Replica) bool {
	works := works(snap)
	return func(r *snapshot.Replica) bool {
		switch {
		case !r.Active(), r.Surge, r.ToReplace(), r.State == v1beta1.LifecyclePreparingDelete:
			return false
		case r.Revision == snap.Update.Name:
			return !r.Ready
		default:
			return !works && !r.Updating && IsBrokenStray(snap, r) && !snap.Refusals[attempt.OfPod(attempt.Relabeling, r.Pod)].Altered
		}
	}
}

// IsBrokenStray reports whether a pod is broken, and at neither of the revisions that are wanted while the guard may hold one of them.
func IsBrokenStray(snap *snapshot.Set, r *snapshot.Replica) bool {
	return r.Broken() && guarded(snap) && r.Revision != snap.Current.Name && r.Revision != snap.Update.Name
}
