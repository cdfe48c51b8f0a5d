// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Done says whether a pod is through with its update in place, and if not, what is waited for. The template is the one
// of the pod's revision; without it, nothing is known about resources.
//
// What the kubelet reports is this: at once, that it has seen the new generation, with everything else as before; when
// the old container has ended and the new one runs, seconds or minutes later and in one write, the new containerID,
// imageID and image. So the generation alone proves nothing. The image does not either: of two tags of one image the
// kubelet reports the one that it likes. Another containerID at the new generation does, because the kubelet replaces
// the container for no other reason while it runs, unless an earlier change had not been carried out: then the other
// container can be of that one, and only the image tells.
//
// A resize is done when the kubelet neither has it pending nor in progress, and reports the resources that are wanted.
func Done(pod *corev1.Pod, to *corev1.PodTemplateSpec, s State) (done bool, waiting string) {
	if s.Empty() { // so it is with nearly all pods nearly always
		return true, ""
	}
	if waiting = firstRestart(pod, s); waiting != "" {
		return false, waiting
	}
	if to == nil {
		return true, ""
	}
	for _, name := range s.Resized {
		if waiting = resized(pod, to, s, name); waiting != "" {
			return false, waiting
		}
	}
	return true, ""
}

// Infeasible says why a node can never give a pod the resources of the template that it was asked for; empty if it can, or
// has not been asked yet. An answer to an earlier question counts for nothing.
func Infeasible(pod *corev1.Pod, to *corev1.PodTemplateSpec, s State) string {
	c := condition(pod, corev1.PodResizePending)
	if c == nil || c.Reason != corev1.PodReasonInfeasible || unseen(pod, pod.Generation) != "" || !Asked(pod, to, s) {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

// Asked says whether the API server has taken over the resources of the template into a pod's spec, so that its node is the
// next to answer.
func Asked(pod *corev1.Pod, to *corev1.PodTemplateSpec, s State) bool {
	if to == nil {
		return false
	}
	patch, err := ResizePatch(pod, to, s.Resized)
	return err == nil && patch == nil
}

// firstRestart returns what is waited for until the first container, by name, that does not run its new image does, "" if
// all do.
func firstRestart(pod *corev1.Pod, s State) (waiting string) {
	first := ""
	for name := range s.Containers {
		m, ok := find(&pod.Spec, name)
		if !ok || waiting != "" && name > first {
			continue
		}
		if w := restarted(pod, m, s); w != "" {
			first, waiting = name, w
		}
	}
	return waiting
}

// restarted returns what is waited for until a container runs its new image, "" if nothing.
func restarted(pod *corev1.Pod, m member, s State) string {
	if waiting := unseen(pod, s.Generation); waiting != "" {
		return waiting
	}
	before, status := s.Containers[m.Name], statusOf(pod, m.Name)
	same := status.ContainerID == before.ID
	switch {
	case status.ContainerID == "":
		return fmt.Sprintf("container %s has not started", m.Name)
	case same && hashOf(m.Image) == before.Image, !same && !before.Overlap:
		return ""
	case before.Overlap && shows(status, m.Image) && status.State.Running != nil:
		return ""
	default:
		return fmt.Sprintf("container %s has not restarted with %s yet", m.Name, m.Image)
	}
}

// shows says whether a container certainly runs an image of a spec.
func shows(status corev1.ContainerStatus, image string) bool {
	if status.Image == image {
		return true
	}
	_, digest, pinned := strings.Cut(image, "@")
	return pinned && strings.HasSuffix(status.ImageID, "@"+digest)
}

// resized returns what is waited for until a container has the resources of a template, "" if nothing.
func resized(pod *corev1.Pod, to *corev1.PodTemplateSpec, s State, name string) string {
	m, inPod := find(&pod.Spec, name)
	wanted, inTemplate := find(&to.Spec, name)
	if !inPod || !inTemplate {
		return ""
	}
	resources := effective(wanted.Resources)
	if !covers(m.Resources, resources) {
		return fmt.Sprintf("container %s is to be resized", name)
	}
	// The resize is a change of its own, after the one of the images; unless there was nothing to resize.
	if waiting := unseen(pod, min(s.Generation+1, pod.Generation)); waiting != "" {
		return waiting
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if c := condition(pod, kind); c != nil {
			return strings.TrimRight(fmt.Sprintf("%s: %s: %s", kind, c.Reason, c.Message), ": ")
		}
	}
	if has := statusOf(pod, name).Resources; has == nil || !covers(*has, resources) {
		return fmt.Sprintf("container %s does not have its new resources yet", name)
	}
	return ""
}

// unseen returns what is waited for until the kubelet has seen a generation of a pod, "" if nothing. A kubelet that has
// started containers and tells no generation never will: it is older than 1.35, and what it has done shows only in the
// containers.
func unseen(pod *corev1.Pod, generation int64) string {
	silent := pod.Status.ObservedGeneration == 0 && started(pod)
	if silent || pod.Status.ObservedGeneration >= generation {
		return ""
	}
	return "the kubelet has not seen the change yet"
}

// started says whether a kubelet has started a container of a pod.
func started(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].ContainerID != "" {
			return true
		}
	}
	return false
}

// statusOf returns the status of a container or init container; it is empty if there is none.
func statusOf(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == name {
				return statuses[i]
			}
		}
	}
	return corev1.ContainerStatus{}
}

// condition returns a condition of a pod that is true, or nil.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
