// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// StandIns returns how many of the pods without a mark of surge are no members: those that the rollout could not have if it had no
// surge, and that are not available yet or, while no pod of the update revision is available, broken strays. Otherwise a lost pod had no
// successor because of a bad template. Pods with a mark are part of maxSurge.
func StandIns(snap *snapshot.Set) int {
	if snap.GivesBack() || !guarded(snap) || yielded(snap, yieldsAt(snap)) {
		return 0
	}
	marked, unavailable, bad := 0, 0, !works(snap)
	for r := range snap.Unsteady() {
		switch {
		case r.Pod == nil || r.Terminating:
		case r.Surge:
			marked++
		case !r.ToReplace() && r.State != v1beta1.LifecyclePreparingDelete && mayStandIn(snap, r) && (bad || r.Revision == snap.Update.Name):
			unavailable++
		}
	}
	return max(0, min(snap.Limits.MaxSurge-marked, unavailable-snap.Limits.MaxUnavailable))
}

// mayStandIn reports whether an active pod is at the update revision and not available, or is a broken stray.
func mayStandIn(snap *snapshot.Set, r *snapshot.Replica) bool {
	if r.Revision == snap.Update.Name {
		return r.Active() && !r.Available
	}
	return IsBrokenStray(snap, r) && !r.Updating
}

// IsBrokenStray reports whether a pod is broken, and at neither of the revisions that are wanted while the guard may hold one of them.
func IsBrokenStray(snap *snapshot.Set, r *snapshot.Replica) bool {
	return r.Broken() && guarded(snap) && r.Revision != snap.Current.Name && r.Revision != snap.Update.Name
}
