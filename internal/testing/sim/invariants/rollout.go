// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// rollout judges which pods come at the update revision.
type rollout struct{ *verdict }

// gains reports whether a pod is at the update revision, and that is not the current one.
func (v rollout) gains(pod *corev1.Pod) bool {
	update, current := v.world.VersionOf(&v.set.Spec.Template), v.world.currentTemplate(v.set)
	return current != nil && v.world.VersionOf(current) != update && v.world.Version(pod) == update
}

// added returns what is wrong with one more pod, if it is at the update revision: there are too many or, with ordinals, its place is
// below the partition.
func (v rollout) added(created *corev1.Pod) string {
	p, update := proof(v), v.world.VersionOf(&v.set.Spec.Template)
	if !v.gains(created) || p.sawProven(created.Labels[v1beta1.RevisionLabel]) || v.wasThere(created) || p.sawUnproven() {
		return ""
	}
	l := v.world.Limits(v.set)
	if v.set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		if rank := slices.Index(v.inUse(), v.ordinalByName(created)); rank >= 0 && rank < l.Partition {
			return fmt.Sprintf("a pod at the update revision in place %d, below the partition %d", rank, l.Partition)
		}
		return "" // others at that revision may be in other places, and are deleted in their turn
	}
	if isSurge(created) {
		return "" // it is deleted again
	}
	staysThere := func(pod *corev1.Pod) bool {
		return IsActive(pod) && v.world.Version(pod) == update && !v.specified(pod) && !isSurge(pod) &&
			pod.Labels[v1beta1.RevisionLabel] == created.Labels[v1beta1.RevisionLabel] // a default makes another revision of the same version
	}
	n := v.count(staysThere) - v.going(staysThere) + 1
	if n > l.Replicas-l.Partition {
		return fmt.Sprintf("%d pods at the update revision, at most %d-%d wanted", n, l.Replicas, l.Partition)
	}
	return v.withinStep(n)
}

// withinStep returns what is wrong if more pods are at the update revision than the current step allows.
func (v rollout) withinStep(updated int) string {
	active := v.world.Set()
	if active == nil || active.UID != v.set.UID || active.Generation != v.set.Generation {
		return "" // the manager does not know the latest edit
	}
	if step, ok := v.world.stepAtWork(active); ok {
		if size := allowed(active, step); updated > size {
			return fmt.Sprintf("%d pods at the update revision, step %d allows %d", updated, step+1, size)
		}
	}
	return ""
}

// wasThere reports whether a pause keeps a pod at its version in its place: the last pod of that name had it or, where names do not come
// back, one that a user named since the pause began had it and went, and has no successor yet.
func (v rollout) wasThere(created *corev1.Pod) (was bool) {
	if !v.set.Spec.UpdateStrategy.RollingUpdate.Paused {
		return false
	}
	version, since, vacant := v.world.Version(created), v.pausedSince(), 0
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

// pausedSince returns the version of the store at which the pause that the manager sees began.
func (v rollout) pausedSince() (since int64) {
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
