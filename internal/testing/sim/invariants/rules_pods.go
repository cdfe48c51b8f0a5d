// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// withinBound checks I3: neither the pods that the manager knows nor those that exist exceed replicas and surge. Pods whose
// ordinal is not in use go, and do not count.
func withinBound(v *verdict) string {
	if !v.createsPod() || v.set == nil {
		return ""
	}
	l := v.world.Limits(v.set)
	l.maxSurge = max(l.maxSurge, v.count(v.surges)) // surge pods of an earlier limit are deleted when the others are available
	if active := v.count(v.stays) + 1; active > l.Replicas+l.maxSurge {
		return fmt.Sprintf("the manager knows of %d active pods that stay, at most %d+%d wanted", active, l.Replicas, l.maxSurge)
	}
	if now := v.world.Set(); now == nil || now.UID != v.set.UID || now.DeletionTimestamp != nil {
		return "" // a pod created for a deleted set is deleted with it
	}
	if len(v.checker.managers) > 1 {
		return "" // names come from the revision, too: two managers that want different ones do not collide
	}
	bound := l.Replicas + l.maxSurge // surge of an earlier limit included
	for e := range v.world.Store.History(apiserver.RollSets) {
		if set, ok := e.New.(*v1beta1.RollSet); ok && set.UID == v.set.UID && set.Generation >= v.set.Generation {
			l := limitsOf(&set.Spec)
			bound = max(bound, l.Replicas+l.maxSurge)
		}
	}
	active := 0
	for _, pod := range v.world.Pods() {
		if v.stays(pod) && OwnerOf(pod) == v.set.UID && v.selects(pod) && (naming{v}).collides(pod) {
			active++
		}
	}
	if active > bound {
		return fmt.Sprintf("%d active pods, at most %d wanted by any spec since the manager's", active, bound)
	}
	return ""
}

// isSurge reports whether a pod is surge: it exists on top of the replicas for a time.
func isSurge(pod *corev1.Pod) bool { return IsActive(pod) && pod.Labels[v1beta1.SurgeLabel] == "true" }

// surges reports whether a pod is surge as its set sees it. The mark means nothing on an ordinal that is in use or below those, nor on a
// random name beside a claim without it, because such surge brings its own claims.
func (v *verdict) surges(pod *corev1.Pod) bool {
	if v.set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		return isSurge(pod) && v.outside(pod) && !v.below(pod)
	}
	return isSurge(pod) && !mountsUnmarked(v.view, pod)
}

// mountsUnmarked reports whether a pod mounts a claim that the caches of a manager show without the mark of surge.
func mountsUnmarked(view *apiserver.View, pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		if volume.PersistentVolumeClaim == nil {
			return false
		}
		key := apiserver.Key{Kind: apiserver.Claims, Namespace: pod.Namespace, Name: volume.PersistentVolumeClaim.ClaimName}
		claim := view.Cached(key)
		return claim != nil && claim.GetLabels()[v1beta1.SurgeLabel] != "true"
	})
}

// stays reports whether a pod is active and, if it has an ordinal that is not in use, surge.
func (v *verdict) stays(pod *corev1.Pod) bool {
	return IsActive(pod) && (!v.outside(pod) || v.surges(pod))
}

// going counts the surplus pods among those given. Unavailable ones go first. Pods above spec.replicas may be surge, unless a set with
// random names marks that.
func (v *verdict) going(among func(*corev1.Pod) bool) int {
	l := v.world.Limits(v.set)
	surplus := v.count(IsActive) - l.Replicas - l.maxSurge
	if v.set.Spec.PodIdentity != v1beta1.OrdinalIdentity && v.world.marksSurge(v.set) {
		surplus = v.count(IsActive) - v.count(isSurge) - l.Replicas
	}
	return max(0, min(surplus, v.count(func(pod *corev1.Pod) bool { return among(pod) && (!v.isAvailable(pod) || restarts(pod)) })))
}

// mayServe reports whether a pod may serve: it is ready, or not ready although its containers are and its gates are open,
// because its node does not answer.
func mayServe(pod *corev1.Pod) bool {
	closed := func(g corev1.PodReadinessGate) bool { return !isTrue(pod, g.ConditionType) }
	return IsReady(pod) || pod.Spec.NodeName != "" && isTrue(pod, corev1.ContainersReady) && !slices.ContainsFunc(pod.Spec.ReadinessGates, closed)
}

// withinBudget checks I4: as far as the manager knows, deleting a pod that may serve, or preparing it for that, leaves enough
// available ones among those that stay. A ready pod that is not available yet counts as unavailable.
func withinBudget(v *verdict) string {
	pod := v.pod()
	if v.set == nil || pod == nil || !v.costsService(pod) {
		return ""
	}
	l := v.world.Limits(v.set)
	ordinal := v.set.Spec.PodIdentity == v1beta1.OrdinalIdentity
	if !ordinal && v.specified(pod) && !v.surges(pod) && v.checker.outline.active > l.Replicas {
		return "" // scaling down deletes specified pods first, even if the others are unavailable
	}
	left := v.count(func(other *corev1.Pod) bool { return v.stays(other) && v.isAvailable(other) })
	members := v.count(func(other *corev1.Pod) bool { return !v.outside(other) && v.isAvailable(other) }) - 1
	switch {
	case ordinal && !v.outside(pod) && v.isAvailable(pod) && members < l.Replicas-max(1, l.maxUnavailable):
		return fmt.Sprintf("%d available members left, at least %d-%d wanted, whatever surge there is", members, l.Replicas, max(1, l.maxUnavailable))
	case v.isAvailable(pod):
		left--
	case !IsActive(pod) || v.count(v.stays) > l.Replicas: // a pod that already counts as unavailable may be surplus
		return ""
	}
	if left < l.Replicas-l.maxUnavailable {
		return fmt.Sprintf("%d available pods left, at least %d-%d wanted", left, l.Replicas, l.maxUnavailable)
	}
	return ""
}

// costsService reports whether a write deletes a pod that may serve and stays, or prepares it for that. Pods that are out of service for
// an update or a hook were judged before, and Recreate deletes all at once.
func (v *verdict) costsService(pod *corev1.Pod) bool {
	switch {
	case !v.deletesPod() && !v.prepares(v1beta1.LifecyclePreparingDelete):
		return false
	case !mayServe(pod), IsUpdating(pod), restarts(pod), v.heldBack(pod), v.prepared(pod), v.changed(pod):
		return false
	default:
		return v.set.Spec.UpdateStrategy.Type != v1beta1.RecreateStrategy && (!v.outside(pod) || v.surges(pod))
	}
}

// order judges in which order pods with ordinals come and go.
type order struct{ *verdict }

// inOrder checks I5: under OrderedReady a pod is created when all pods below it are available, and deleted when all
// above it are gone.
func inOrder(v *verdict) string {
	if v.set == nil || v.set.Spec.PodIdentity != v1beta1.OrdinalIdentity || v.set.Spec.PodManagementPolicy == v1beta1.ParallelPodManagement {
		return ""
	}
	pod := v.pod()
	switch {
	case v.createsPod():
		return order{v}.comesInOrder(v.ordinalByName(apiserver.MustBe[*corev1.Pod](v.New)))
	case v.deletesPod() && pod != nil && v.outside(pod):
		return order{v}.goesInOrder(pod)
	default:
		return ""
	}
}

// comesInOrder returns which place in use below an ordinal has no available pod, and none for which surge may come.
func (v order) comesInOrder(number int) string {
	for _, below := range v.inUse() {
		if below >= number {
			break
		}
		if v.count(func(pod *corev1.Pod) bool {
			return v.ordinalByName(pod) == below && (v.isAvailable(pod) || v.awaitsSurge(pod))
		}) == 0 {
			return fmt.Sprintf("%d is not available", below)
		}
	}
	return ""
}

// awaitsSurge reports whether surge is created, and a pod serves that is prepared for its deletion because it is not known which images
// it runs.
func (v order) awaitsSurge(pod *corev1.Pod) bool {
	return v.createsPod() && isSurge(apiserver.MustBe[*corev1.Pod](v.New)) && v.prepared(pod) && pod.Annotations[inPlaceState] != "" &&
		IsAvailable(pod, v.set.Spec.MinReadySeconds, v.now)
}

func (v order) goesInOrder(pod *corev1.Pod) string {
	if apiserver.HasEnded(pod) {
		return "" // nothing runs in it
	}
	going := func(other *corev1.Pod) bool { return other.DeletionTimestamp != nil && v.outside(other) }
	if v.count(going) > 0 {
		return "another pod above the range is still terminating"
	}
	waits := isSurge(pod) && !v.below(pod) && !v.reserved(v.ordinalByName(pod)) // for surge too, which may serve for longer than surplus pods
	above := func(other *corev1.Pod) bool {
		return IsActive(other) && v.outside(other) && (waits || !isSurge(other)) && v.ordinalByName(other) > v.ordinalByName(pod)
	}
	if v.isAvailable(pod) && v.count(above) > 0 && !v.isInTheWay(pod) && !v.specified(pod) {
		return "a higher pod has to go first"
	}
	if !v.isAvailable(pod) || v.isInTheWay(pod) {
		return ""
	}
	if v.checker.creates.refused[v.Actor] {
		return "" // a quota is full, and one that goes makes room
	}
	if v.count(v.recreated) > 0 {
		return "" // Recreate deletes those below at the same time
	}
	return v.comesInOrder(v.ordinalByName(pod))
}

// recreated reports whether Recreate deletes a pod because of its revision.
func (v order) recreated(pod *corev1.Pod) bool {
	wanted, revision, runs := v.world.VersionOf(&v.set.Spec.Template), v.set.Status.UpdateRevision, guard(v).runsSpec(pod)
	if v.world.Rejected(v.set) {
		wanted, revision, runs = v.world.VersionNamed(v.set.Status.CurrentRevision), v.set.Status.CurrentRevision, true
	}
	strategy := &v.set.Spec.UpdateStrategy
	old := v.world.Version(pod) != wanted || pod.Labels[v1beta1.RevisionLabel] != revision || !runs // a default makes another revision of the same version
	return strategy.Type == v1beta1.RecreateStrategy && !strategy.RollingUpdate.Paused && old
}

// isInTheWay reports whether Recreate deletes a pod before its turn. It does when the pod blocks new ones, and the
// highest pod cannot be deleted because a pod that stays is unavailable, or because no pod is surplus.
func (v order) isInTheWay(pod *corev1.Pod) bool {
	if !v.recreated(pod) {
		return false
	}
	stays := func(other *corev1.Pod) bool { return !v.outside(other) && !v.isAvailable(other) }
	return v.count(stays) > 0 || v.comesInOrder(v.ordinalByName(pod)) != "" || v.count(IsActive) <= limitsOf(&v.set.Spec).Replicas
}

// atWantedRevision checks I6: no more pods are at the update revision than the partition allows, and no pod is moved
// while the set is paused.
func atWantedRevision(v *verdict) string {
	if v.set == nil {
		return ""
	}
	l := v.world.Limits(v.set)
	rolling := v.set.Spec.UpdateStrategy.Type == v1beta1.RollingUpdateStrategy
	if pod := v.pod(); v.deletesPod() && pod != nil {
		frozen := !rolling && v.set.Spec.UpdateStrategy.Type != v1beta1.RecreateStrategy || v.set.Spec.UpdateStrategy.RollingUpdate.Paused
		if frozen && IsActive(pod) && !isSurge(pod) && !v.specified(pod) && !v.outside(pod) && v.count(IsActive) <= l.Replicas {
			return "a pod is moved although the set is paused or OnDelete"
		}
	}
	if !v.createsPod() || !rolling || v.set.Status.CurrentRevision == "" {
		return ""
	}
	return rollout{v}.added(apiserver.MustBe[*corev1.Pod](v.New))
}

// specified reports whether a user asked to delete the pod, or its node leaves.
func (v *verdict) specified(pod *corev1.Pod) bool { return v.named(pod) || v.leaving(pod) }

// isNumber reports whether an annotation has a value that managers write.
func isNumber(note string) bool {
	_, err := strconv.ParseInt(note, 10, 64)
	return err == nil
}
