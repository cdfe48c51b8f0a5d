// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/simulator/kubelet"
)

// podUpdate is a write that updates a pod in place. Only before and after show what the write did, because another
// manager may have written the pod after the manager saw it.
type podUpdate struct {
	// known is the pod as the manager knew it, before and after are its states around the write.
	known, before, after *corev1.Pod
}

// update returns what a write did to a pod; false for other writes.
func (v *verdict) update() (u podUpdate, ok bool) {
	u.known = v.pod()
	before, wasPod := v.Old.(*corev1.Pod)
	after, isPod := v.New.(*corev1.Pod)
	u.before, u.after = before, after
	return u, v.Verb == apiserver.Patch && u.known != nil && wasPod && isPod && v.set != nil
}

// sameImages reports whether the write leaves all images as they are.
func (u podUpdate) sameImages() bool {
	for i := range u.before.Spec.Containers {
		if u.before.Spec.Containers[i].Image != u.after.Spec.Containers[i].Image {
			return false
		}
	}
	return true
}

// keepsServing checks I4 for updates in place: when an available pod is prepared, is taken out of service, or its containers
// restart, enough available pods are left, as far as the manager knows.
func keepsServing(v *verdict) string {
	u, ok := v.update()
	if !ok || !v.isAvailable(u.known) || restarts(u.known) {
		return ""
	}
	if IsUpdating(u.after) == IsUpdating(u.before) && u.sameImages() && !v.prepares(v1beta1.LifecyclePreparingUpdate) {
		return ""
	}
	l := v.world.Limits(v.set)
	if left := v.count(v.isAvailable) - 1; left < l.Replicas-l.maxUnavailable {
		return fmt.Sprintf("%d pods left in service, at least %d-%d wanted", left, l.Replicas, l.maxUnavailable)
	}
	return ""
}

// restarts reports whether a kubelet has yet to restart a container of a pod for an update in place, as far as a manager can
// know. Such a pod counts as unavailable from the first write on. Without a gate, its readiness does not show it.
func restarts(pod *corev1.Pod) bool {
	if pod.Annotations[inPlaceState] == "" {
		return false // no manager has changed it
	}
	if isUnseen(pod) {
		return true
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		c := containerNamed(pod, status.Name)
		if c == nil {
			continue
		}
		if status.ContainerID != "" && !kubelet.StartedFrom(pod, status, c.Image) || isVague(status.Image, c.Image) {
			return true
		}
		for _, p := range c.ResizePolicy {
			if p.RestartPolicy == corev1.RestartContainer && status.Resources != nil && !status.Resources.Requests[p.ResourceName].Equal(c.Resources.Requests[p.ResourceName]) {
				return true
			}
		}
	}
	return false
}

// isUnseen reports whether the kubelet has not seen the last change of a pod.
func isUnseen(pod *corev1.Pod) bool {
	seen := pod.Status.ObservedGeneration
	return seen != 0 && seen < pod.Generation
}

// isVague reports whether a node names the image of a container by its content only, or by another tag. Which of two images runs may
// then not be provable.
func isVague(reported, image string) bool {
	return strings.HasPrefix(reported, "sha256:") || !strings.HasSuffix(reported, image) && !strings.Contains(image, "@")
}

// containerNamed returns the container of a pod with a name; nil if there is none.
func containerNamed(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

// runsOldImage returns the name of the first container that runs another image than its spec has, so that the kubelet
// will end it; empty if there is none.
func runsOldImage(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		c := containerNamed(pod, status.Name)
		if c != nil && status.State.Running != nil && !kubelet.Runs(pod, status, c.Image) {
			return c.Name
		}
	}
	return ""
}

// opensWhenDone checks that a manager does not put a pod into service while it knows of a container that the kubelet
// will end for another image.
func opensWhenDone(v *verdict) string {
	u, ok := v.update()
	if !ok || v.Subresource != "status" || IsUpdating(u.after) || !IsUpdating(u.before) {
		return ""
	}
	if name := runsOldImage(u.known); name != "" {
		return fmt.Sprintf("it is put into service, and container %s is about to be ended", name)
	}
	return ""
}

// closesFirst checks that the containers of a pod with a gate are not changed while the pod is in service.
func closesFirst(v *verdict) string {
	u, ok := v.update()
	if !ok || u.sameImages() || !IsReady(u.known) || IsUpdating(u.known) {
		return ""
	}
	if hasGate(u.known) {
		return "its containers are changed while it is in service"
	}
	return ""
}

// updatesAsWanted checks I6 for updates in place.
func updatesAsWanted(v *verdict) string {
	u, ok := v.update()
	if !ok || v.set.Status.CurrentRevision == "" || v.world.Version(u.before) == v.world.Version(u.after) || v.world.Version(u.before) == "?" || u.relabelsLost(v.world) {
		return ""
	}
	if v.set.Spec.UpdateStrategy.RollingUpdate.Paused || v.set.Spec.UpdateStrategy.Type != v1beta1.RollingUpdateStrategy {
		return "a pod is moved although the set is paused, or has another strategy"
	}
	return rollout{v}.added(u.after)
}

// relabelsLost reports whether an update changes nothing but labels of a pod, and the template of its revision is lost. Such a pod is not
// moved: nothing shows what it was made from.
func (u podUpdate) relabelsLost(world *Cluster) bool {
	return world.TemplateOf(u.before.Labels[v1beta1.RevisionLabel]) == nil &&
		equality.Semantic.DeepEqual(u.before.Spec, u.after.Spec) && maps.Equal(u.before.Annotations, u.after.Annotations)
}

// runsItsRevision checks that the images written to a pod are those in the template of its revision.
func runsItsRevision(v *verdict) string {
	u, ok := v.update()
	if !ok || u.sameImages() {
		return ""
	}
	revision := u.after.Labels[v1beta1.RevisionLabel]
	template := v.world.TemplateOf(revision)
	if template == nil { // the manager may not know yet that it was deleted
		known, _ := v.view.Cached(v.world.revisionKey(revision)).(*appsv1.ControllerRevision)
		template = v.world.templateIn(known)
	}
	if template == nil && revision == v.set.Status.UpdateRevision { // one that is lost, and is named after another content of the same meaning
		template = &v.set.Spec.Template
	}
	if template == nil {
		return "it is moved to a revision that does not exist"
	}
	for i := range template.Spec.Containers {
		if wanted := template.Spec.Containers[i].Image; u.after.Spec.Containers[i].Image != wanted {
			return fmt.Sprintf("it gets the image %s, its revision has %s", u.after.Spec.Containers[i].Image, wanted)
		}
	}
	return ""
}
