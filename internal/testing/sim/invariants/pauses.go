// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// wasThere reports whether a pause keeps a pod at a version in its place: the last pod of that name had it or, where names do not come
// back, one that a user named since the pause began had it and went, and has no successor yet.
func (v *verdict) wasThere(version string, created *corev1.Pod) (was bool) {
	if !v.set.Spec.UpdateStrategy.RollingUpdate.Paused {
		return false
	}
	since, vacant := v.pausedSince(), 0
	for e := range v.world.Store.History(apiserver.Pods) {
		before, existed := e.Old.(*corev1.Pod)
		after, exists := e.New.(*corev1.Pod)
		went := existed && before.DeletionTimestamp == nil && (!exists || after.DeletionTimestamp != nil)
		switch {
		case existed && e.Key == apiserver.KeyOf(created) && !exists:
			was = v.world.Version(before) == version
		case e.Version < since || e.Version >= v.Version || v.hasIdentity(created):
		case went && OwnerOf(before) == v.set.UID && v.specified(before) && !isSurge(before) && v.world.Version(before) == version:
			vacant++
		case !existed && exists && v.checker.managers[e.Actor] && OwnerOf(after) == v.set.UID && !isSurge(after) && v.world.Version(after) == version:
			vacant = max(0, vacant-1)
		}
	}
	return was || vacant > 0
}

// hasIdentity reports whether the successor of a pod has its name: because of an ordinal, or because of claims.
func (v *verdict) hasIdentity(pod *corev1.Pod) bool {
	return v.set.Spec.PodIdentity == v1beta1.OrdinalIdentity || len(ClaimsOf(pod)) > 0
}

// pausedSince returns the version of the store at which the pause that the manager sees began.
func (v *verdict) pausedSince() (since int64) {
	for e := range v.world.Store.History(apiserver.RollSets) {
		set, ok := e.New.(*v1beta1.RollSet)
		switch {
		case !ok || set.UID != v.set.UID || set.Generation > v.set.Generation:
		case !set.Spec.UpdateStrategy.RollingUpdate.Paused:
			since = 0
		case since == 0:
			since = e.Version
		}
	}
	return since
}
