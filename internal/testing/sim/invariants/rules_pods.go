// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// withinBound is I3: what the manager knows, and what is, never exceed replicas and surge.
func withinBound(v *verdict) string {
	if !v.createsPod() || v.set == nil {
		return ""
	}
	l := v.world.Limits(v.set)
	l.maxSurge = max(l.maxSurge, v.count(isSurge)) // what surge made under an earlier limit goes when the others are available
	if live := v.count(IsLive) + 1; live > l.Replicas+l.maxSurge {
		return fmt.Sprintf("the manager knows of %d live pods, at most %d+%d wanted", live, l.Replicas, l.maxSurge)
	}
	if now := v.world.Set(); now == nil || now.UID != v.set.UID || now.DeletionTimestamp != nil {
		return "" // what is made for a set that goes, or is gone, goes as well
	}
	if len(v.checker.managers) > 1 {
		return "" // names come from the revision, too: two managers that want different ones do not collide
	}
	bound := l.Replicas + l.maxSurge // surge of an earlier limit included
	for e := range v.world.Store.History(apiserver.RollSets) {
		if set, ok := e.New.(*v1alpha1.RollSet); ok && set.UID == v.set.UID && set.Generation >= v.set.Generation {
			l := limitsOf(&set.Spec)
			bound = max(bound, l.Replicas+l.maxSurge)
		}
	}
	live := 0
	for _, pod := range v.world.Pods() {
		if IsLive(pod) && OwnerOf(pod) == v.set.UID && v.selects(pod) && v.collides(pod) {
			live++
		}
	}
	if live > bound {
		return fmt.Sprintf("%d live pods, at most %d wanted by any spec since the manager's", live, bound)
	}
	return ""
}

// isSurge says whether a pod is there on top of the replicas, and goes again.
func isSurge(pod *corev1.Pod) bool { return IsLive(pod) && pod.Labels[v1alpha1.SurgeLabel] == "true" }

// collides says whether the manager knows of a pod or would come across it: a pod that it made in an earlier life has a
// name that it tries again, even if its caches begin before that; unless the spec has changed, a name that is tried
// earlier has become free, or an earlier pod of that name is still in sight (docs/adr/0023).
func (v *verdict) collides(pod *corev1.Pod) bool {
	key := apiserver.KeyOf(pod)
	if known := v.pods[key]; known != nil {
		return known.UID == pod.UID
	}
	return key == v.Key || v.made[creation{pod.UID, v.set.UID}] == v.set.Generation && !v.comesBack()
}

// comesBack says whether a pod has the name of one that is gone.
func (v *verdict) comesBack() bool {
	for e := range v.world.Store.History(apiserver.Pods) {
		if e.Key == v.Key && e.Gone() {
			return true
		}
	}
	return false
}

// withinBudget is I4: deleting a pod that is ready leaves enough available ones, from what the manager knows. One that is
// not available yet counts as unavailable already.
func withinBudget(v *verdict) string {
	pod := v.pod()
	if !v.deletesPod() || v.set == nil || pod == nil || !IsReady(pod) || IsUpdating(pod) || restarts(pod) || v.heldBack(pod) {
		return ""
	}
	if v.set.Spec.UpdateStrategy.Type == v1alpha1.RecreateStrategy || v.outside(pod) {
		return ""
	}
	l := v.world.Limits(v.set)
	if v.specified(pod) && v.count(IsLive) > l.Replicas {
		return "" // scaling down takes first what a user named, whatever the others are worth
	}
	left := v.count(v.isAvailable)
	switch {
	case v.isAvailable(pod):
		left--
	case !IsLive(pod) || v.count(IsLive) > l.Replicas: // one that counts as unavailable already may be too many
		return ""
	}
	if left < l.Replicas-l.maxUnavailable {
		return fmt.Sprintf("%d available pods left, at least %d-%d wanted", left, l.Replicas, l.maxUnavailable)
	}
	return ""
}

// outside says whether a pod's ordinal is not among those in use, so that scaling down takes it whatever is broken.
func (v *verdict) outside(pod *corev1.Pod) bool {
	if v.set.Spec.PodIdentity != v1alpha1.OrdinalIdentity {
		return false
	}
	rank, usable := v.ordinals().Rank(v.ordinalByName(pod))
	return !usable || rank >= int(*v.set.Spec.Replicas)
}

func (v *verdict) ordinals() identity.Ordinals {
	start := int32(0)
	if o := v.set.Spec.Ordinals; o != nil {
		start = o.Start
	}
	ordinals, err := identity.NewOrdinals(start, v.set.Spec.ReserveOrdinals)
	if err != nil {
		apiserver.Unmodeled("ordinals: %v", err)
	}
	return ordinals
}

// ordinalByName is the ordinal that a pod's name stands for, which a pod that was adopted has without a label; -1 if there is
// none.
func (v *verdict) ordinalByName(pod *corev1.Pod) int {
	return numberOrNone(strings.TrimPrefix(pod.Name, v.set.Name+"-"))
}

// inOrder is I5: under OrderedReady a pod comes when all before it are available, and goes when all above it have gone.
func inOrder(v *verdict) string {
	if v.set == nil || v.set.Spec.PodIdentity != v1alpha1.OrdinalIdentity || v.set.Spec.PodManagementPolicy == v1alpha1.ParallelPodManagement {
		return ""
	}
	pod := v.pod()
	switch {
	case v.createsPod():
		return v.comesInOrder(v.ordinalByName(apiserver.MustBe[*corev1.Pod](v.New)))
	case v.deletesPod() && pod != nil && v.outside(pod):
		return v.goesInOrder(pod)
	default:
		return ""
	}
}

func (v *verdict) comesInOrder(number int) string {
	rank, _ := v.ordinals().Rank(number)
	for k := range rank {
		below := v.ordinals().At(k)
		if v.count(func(pod *corev1.Pod) bool { return v.ordinalByName(pod) == below && v.isAvailable(pod) }) == 0 {
			return fmt.Sprintf("%d is not available", below)
		}
	}
	return ""
}

func (v *verdict) goesInOrder(pod *corev1.Pod) string {
	if apiserver.HasEnded(pod) {
		return "" // nothing runs in it any more
	}
	going := func(other *corev1.Pod) bool { return other.DeletionTimestamp != nil && v.outside(other) }
	if v.count(going) > 0 {
		return "another pod above the range is still terminating"
	}
	above := func(other *corev1.Pod) bool {
		return IsLive(other) && v.outside(other) && v.ordinalByName(other) > v.ordinalByName(pod)
	}
	if v.isAvailable(pod) && v.count(above) > 0 && !v.isInTheWay(pod) {
		return "a higher pod has to go first"
	}
	return ""
}

// isInTheWay says whether Recreate takes a pod before its turn: nothing new comes while it is there, and the highest
// cannot go, for a pod that stays is not available, or for none is too many.
func (v *verdict) isInTheWay(pod *corev1.Pod) bool {
	wanted := v.world.VersionOf(&v.set.Spec.Template)
	if v.world.Rejected(v.set) {
		wanted = v.world.VersionNamed(v.set.Status.CurrentRevision)
	}
	strategy := &v.set.Spec.UpdateStrategy
	if strategy.Type != v1alpha1.RecreateStrategy || strategy.RollingUpdate.Paused || v.world.Version(pod) == wanted {
		return false
	}
	stays := func(other *corev1.Pod) bool { return !v.outside(other) && !v.isAvailable(other) }
	return v.count(stays) > 0 || v.count(IsLive) <= limitsOf(&v.set.Spec).Replicas
}

// atWantedRevision is I6: no more pods at the update revision than the partition allows, and no move while paused.
func atWantedRevision(v *verdict) string {
	if v.set == nil {
		return ""
	}
	l := v.world.Limits(v.set)
	rolling := v.set.Spec.UpdateStrategy.Type == v1alpha1.RollingUpdateStrategy
	if pod := v.pod(); v.deletesPod() && pod != nil {
		frozen := !rolling && v.set.Spec.UpdateStrategy.Type != v1alpha1.RecreateStrategy || v.set.Spec.UpdateStrategy.RollingUpdate.Paused
		if frozen && IsLive(pod) && !isSurge(pod) && !v.specified(pod) && !v.outside(pod) && v.count(IsLive) <= l.Replicas {
			return "a pod is moved although the set is paused or OnDelete"
		}
	}
	if !v.createsPod() || !rolling || v.set.Status.CurrentRevision == "" {
		return ""
	}
	return v.createdAsWanted()
}

// createdAsWanted says what is wrong with a new pod at the update revision.
func (v *verdict) createdAsWanted() string {
	update := v.world.VersionOf(&v.set.Spec.Template)
	revision := v.world.Store.Get(apiserver.Key{Kind: apiserver.Revisions, Namespace: v.world.set.Namespace, Name: v.set.Status.CurrentRevision})
	if revision == nil || OwnerOf(revision) != v.set.UID { // the set was deleted, and leaves it behind
		return ""
	}
	current := v.world.templateIn(revision)
	created := apiserver.MustBe[*corev1.Pod](v.New)
	if current == nil || v.world.VersionOf(current) == update || v.world.Version(created) != update {
		return ""
	}
	return v.addedTo(update, created)
}

// addedTo says what is wrong with one more pod at the update revision: there are enough of them or, with ordinals, its place
// is one of those below the partition.
func (v *verdict) addedTo(update string, created *corev1.Pod) string {
	l := v.world.Limits(v.set)
	if v.set.Spec.PodIdentity == v1alpha1.OrdinalIdentity {
		if rank, _ := v.ordinals().Rank(v.ordinalByName(created)); rank < l.Partition {
			return fmt.Sprintf("a pod at the update revision in place %d, below the partition %d", rank, l.Partition)
		}
		return "" // others at that revision may be in other places, and go in their turn
	}
	if isSurge(created) {
		return "" // it goes again
	}
	staysThere := func(pod *corev1.Pod) bool {
		return IsLive(pod) && v.world.Version(pod) == update && !v.specified(pod) && !isSurge(pod) &&
			pod.Labels[v1alpha1.RevisionLabel] == created.Labels[v1alpha1.RevisionLabel] // a default makes another of the same version
	}
	n := v.count(staysThere) + 1
	if n > l.Replicas-l.Partition {
		return fmt.Sprintf("%d pods at the update revision, at most %d-%d wanted", n, l.Replicas, l.Partition)
	}
	return v.withinStep(n)
}

// specified says whether a user asked for the pod to go.
func (v *verdict) specified(pod *corev1.Pod) bool {
	if value, ok := pod.Labels[v1alpha1.SpecifiedDeleteLabel]; ok && value != "false" {
		return true
	}
	return pod.Labels[v1alpha1.ReplacedLabel] != "true" && v.set.Spec.ScaleStrategy != nil && slices.Contains(v.set.Spec.ScaleStrategy.PodsToDelete, pod.Name)
}

// isNumber says whether a note is one that managers write.
func isNumber(note string) bool {
	_, err := strconv.ParseInt(note, 10, 64)
	return err == nil
}

// notesTheTruth says that a revision is noted as complete when it was at the beginning of the reconcile: the manager's cache
// shows as many pods at it as are wanted, all of them available, and no others.
func notesTheTruth(v *verdict) string {
	is, ok := v.New.(*appsv1.ControllerRevision)
	was, existed := v.Old.(*appsv1.ControllerRevision)
	if !ok || v.set == nil {
		return ""
	}
	note, noted := is.Annotations[revision.CompletedAnnotation]
	switch {
	case !existed && noted && note != "0":
		return "a new revision is complete"
	case !existed, was.Annotations[revision.CompletedAnnotation] == note, !isNumber(was.Annotations[revision.CompletedAnnotation]):
		return "" // where there was no note, or none that can be read, it repeats what the status says of the current revision
	}
	version, complete := v.world.VersionNamed(is.Name), 0
	for obj := range v.checker.reconcile.View.Cache(apiserver.Pods) {
		pod := apiserver.MustBe[*corev1.Pod](obj)
		switch {
		case OwnerOf(pod) != v.set.UID, !v.selects(pod):
		case v.world.Version(pod) != version, IsLive(pod) && !v.isAvailable(pod):
			return fmt.Sprintf("%s is not complete: %s is left", is.Name, v.world.Name(pod))
		case IsLive(pod):
			complete++
		}
	}
	if complete != int(*v.set.Spec.Replicas) {
		return fmt.Sprintf("%s is not complete: %d pods of %d", is.Name, complete, *v.set.Spec.Replicas)
	}
	return ""
}
