// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1alpha1"
)

// update is a write that changes a pod where it is: the pod as the manager knew it, as it was, and as it is now. The last
// two tell what the write did; another manager may have been there in the meantime. ok is false for other writes.
func (v *verdict) update() (known, before, after *corev1.Pod, ok bool) {
	known = v.pod()
	before, wasPod := v.Old.(*corev1.Pod)
	after, isPod := v.New.(*corev1.Pod)
	if v.Verb != Patch || known == nil || !wasPod || !isPod || v.set == nil {
		return nil, nil, nil, false
	}
	return known, before, after, true
}

// keepsServing is I4 for updates in place: taking an available pod out of service, or restarting its containers, leaves
// enough of them, from what the manager knows.
func keepsServing(v *verdict) string {
	known, before, after, ok := v.update()
	serves := func(pod *corev1.Pod) bool { return v.isAvailable(pod) && !isUpdating(pod) }
	if !ok || !serves(known) {
		return ""
	}
	if isUpdating(after) == isUpdating(before) && sameImages(before, after) {
		return ""
	}
	l := limitsOf(&v.set.Spec)
	if left := v.count(serves) - 1; left < l.replicas-l.maxUnavailable {
		return fmt.Sprintf("%d pods left in service, at least %d-%d wanted", left, l.replicas, l.maxUnavailable)
	}
	return ""
}

// closesFirst says that containers of a pod with a gate are not touched while it is in service.
func closesFirst(v *verdict) string {
	known, before, after, ok := v.update()
	if !ok || sameImages(before, after) || !isReady(known) || isUpdating(known) {
		return ""
	}
	for _, gate := range known.Spec.ReadinessGates {
		if gate.ConditionType == v1alpha1.InPlaceUpdateReady {
			return "its containers are changed while it is in service"
		}
	}
	return ""
}

// updatesAsWanted is I6 for updates in place.
func updatesAsWanted(v *verdict) string {
	_, before, after, ok := v.update()
	if !ok || v.set.Status.CurrentRevision == "" || v.world.version(before) == v.world.version(after) || v.world.version(before) == "?" {
		return ""
	}
	if v.set.Spec.UpdateStrategy.RollingUpdate.Paused || v.set.Spec.UpdateStrategy.Type != v1alpha1.RollingUpdateStrategy {
		return "a pod is moved although the set is paused, or has another strategy"
	}
	current, update := v.world.templateOf(v.set.Status.CurrentRevision), v.world.versionOf(&v.set.Spec.Template)
	if current == nil || v.world.versionOf(current) == update || v.world.version(after) != update {
		return ""
	}
	l := limitsOf(&v.set.Spec)
	if v.set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy == v1alpha1.InPlaceOnlyPod {
		l.replicas += l.maxSurge // no pod goes because surge has taken its place
	}
	if n := v.count(func(pod *corev1.Pod) bool { return isLive(pod) && v.world.version(pod) == update }) + 1; n > l.replicas-l.partition {
		return fmt.Sprintf("%d pods at the update revision, at most %d-%d wanted", n, l.replicas, l.partition)
	}
	return ""
}

// runsItsRevision says that whatever is written to a pod comes from the template of its revision.
func runsItsRevision(v *verdict) string {
	_, before, after, ok := v.update()
	if !ok || sameImages(before, after) {
		return ""
	}
	template := v.world.templateOf(after.Labels[v1alpha1.RevisionLabel])
	if template == nil {
		return "it is moved to a revision that does not exist"
	}
	for i := range template.Spec.Containers {
		if wanted := template.Spec.Containers[i].Image; after.Spec.Containers[i].Image != wanted {
			return fmt.Sprintf("it gets the image %s, its revision has %s", after.Spec.Containers[i].Image, wanted)
		}
	}
	return ""
}

func sameImages(a, b *corev1.Pod) bool {
	for i := range a.Spec.Containers {
		if a.Spec.Containers[i].Image != b.Spec.Containers[i].Image {
			return false
		}
	}
	return true
}
