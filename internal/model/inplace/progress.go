// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Progress is the progress of a pod's last update in place.
type Progress struct {
	// Restart says why not all containers run their new images yet, and Resize why they do not have their new resources;
	// empty if they do.
	Restart, Resize string
	// Postponed is true if the resize waits for an answer that may never come: the node has no room for it.
	Postponed bool
	// Passing is true if the proof that the containers run their new images may not last: a manager that starts later may
	// not find it.
	Passing bool
}

// Done reports whether nothing is waited for.
func (p Progress) Done() bool { return p.Restart == "" && p.Resize == "" }

// Of returns the progress of a pod's last update in place. to is the template of the pod's revision; without it, nothing is
// known about resources. The sighting is a further proof.
//
// A resize is done when the kubelet reports it neither as pending nor as in progress, and reports the wanted resources.
// Later changes of the resources do not matter to the controller until the template asks for others.
func Of(pod *corev1.Pod, to *corev1.PodTemplateSpec, s State, seen Sighting) (p Progress) {
	if s.Empty() { // true for nearly all pods
		return p
	}
	p.Restart, p.Passing = firstRestart(pod, s, seen)
	if to == nil {
		return p
	}
	for _, name := range s.Resized {
		if p.Resize = resized(pod, to, s, name); p.Resize != "" {
			p.Postponed = Asked(pod, to, s) && condition(pod, corev1.PodResizePending) != nil && unseen(pod, pod.Generation) == ""
			break
		}
	}
	return p
}

// Infeasible returns why a node can never give a pod the requested resources of the template; empty if it can, or has not
// been asked yet. An answer to an earlier request counts for nothing.
func Infeasible(pod *corev1.Pod, to *corev1.PodTemplateSpec, s State) string {
	c := condition(pod, corev1.PodResizePending)
	if c == nil || c.Reason != corev1.PodReasonInfeasible || unseen(pod, pod.Generation) != "" || !Asked(pod, to, s) {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

// Asked reports whether the API server has accepted the resources of the template in the pod's spec, so that the node
// answers next.
func Asked(pod *corev1.Pod, to *corev1.PodTemplateSpec, s State) bool {
	if to == nil {
		return false
	}
	patch, err := ResizePatch(pod, to, s.Resized)
	return err == nil && patch == nil
}

// resized returns what must happen until a container has the resources of a template; empty if nothing.
func resized(pod *corev1.Pod, to *corev1.PodTemplateSpec, s State, name string) string {
	m, inPod := find(&pod.Spec, name)
	wanted, inTemplate := find(&to.Spec, name)
	if !inPod || !inTemplate {
		return ""
	}
	resources := effective(wanted.Resources)
	if !covers(m.Resources, resources) {
		if pod.Generation > s.Generation+1 {
			return "" // our resize was accepted, and another came after it
		}
		return fmt.Sprintf("container %s is to be resized", name)
	}
	// The resize is a separate change, after that of the images, unless there was nothing to resize.
	if waiting := unseen(pod, min(s.Generation+1, pod.Generation)); waiting != "" {
		return fmt.Sprintf("container %s: %s", name, waiting)
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

// unseen returns what must happen until the kubelet has observed a generation of a pod; empty if nothing. A kubelet that has
// started containers and reports no generation never will: it is older than 1.34, and its work shows only in the containers.
func unseen(pod *corev1.Pod, generation int64) string {
	if silent(pod) || pod.Status.ObservedGeneration >= generation {
		return ""
	}
	return "the kubelet has not seen the change yet"
}

// silent reports whether a kubelet does not report which generation of a pod it has observed.
func silent(pod *corev1.Pod) bool { return pod.Status.ObservedGeneration == 0 && started(pod) }

// started reports whether a kubelet has started a container of a pod.
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
