// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Stepper plays the kubelet of a pod: a Model, or a type built on one.
type Stepper interface {
	// Step reports what the kubelet of the pod's node does about the pod at the time now.
	Step(pod *corev1.Pod, memory Memory, now time.Time) Outcome
}

// Resume returns the memory of a kubelet that continues from a pod's status, and the time of its next Step. due is
// false if the next Step comes only with a change of the pod. The kubelet has waited since the pod's last change.
func Resume(s Stepper, pod *corev1.Pod, now time.Time) (memory Memory, next time.Time, due bool) {
	memory = Memory{awake: true}
	since := lastChange(pod)
	out := s.Step(pod, memory, since)
	if out.Status != nil || out.Remove { // something changed that the status does not show yet
		return memory, now, true
	}
	next = since.Add(out.Next)
	if next.Before(now) {
		next = now
	}
	return out.Memory, next, out.Next > 0
}

// lastChange returns the time of the last change that a pod's status records.
func lastChange(pod *corev1.Pod) time.Time {
	if at := pod.DeletionTimestamp; at != nil && pod.DeletionGracePeriodSeconds != nil {
		return at.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	}
	last := pod.CreationTimestamp.Time
	consider := func(t metav1.Time) {
		if t.After(last) {
			last = t.Time
		}
	}
	if pod.Status.StartTime != nil {
		consider(*pod.Status.StartTime)
	}
	for i := range pod.Status.Conditions {
		consider(pod.Status.Conditions[i].LastTransitionTime)
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if running := statuses[i].State.Running; running != nil {
				consider(running.StartedAt)
			}
			if ended := statuses[i].State.Terminated; ended != nil {
				consider(ended.FinishedAt)
			}
		}
	}
	return last
}
