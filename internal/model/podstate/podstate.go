// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package podstate interprets a pod's status.
//
// The rule: what the status says counts, and nothing that it omits is guessed. Every answer that depends on time also says
// when it changes. Every text is stable while nothing changes, bounded, and safe to print.
package podstate

import (
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Scheduled reports whether the pod has a node.
func Scheduled(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" || conditionTrue(pod, corev1.PodScheduled)
}

// SchedulingGated reports whether a scheduling gate keeps the scheduler from trying. Another program opens it.
func SchedulingGated(pod *corev1.Pod) bool { return len(pod.Spec.SchedulingGates) > 0 }

// TriedSince returns since when a cluster has tried to run the pod: since it was created or, if it had scheduling gates, since it got a
// node.
func TriedSince(pod *corev1.Pod) time.Time {
	since := pod.CreationTimestamp.Time
	if c := Condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(since) {
		since = c.LastTransitionTime.Time
	}
	return since
}

// ReadySince returns when the pod became ready, and whether it is ready. It is the zero time for a ready pod whose status
// does not say since when.
func ReadySince(pod *corev1.Pod) (time.Time, bool) {
	c := Condition(pod, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionTrue {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// UnreadySince returns since when an unready pod has been unready.
func UnreadySince(pod *corev1.Pod) time.Time {
	since := pod.CreationTimestamp.Time
	if c := Condition(pod, corev1.PodReady); c != nil && c.LastTransitionTime.After(since) {
		since = c.LastTransitionTime.Time
	}
	return since
}

// NeverReady reports whether a pod has not been ready since its node started it.
func NeverReady(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.PodReady)
	if c == nil {
		return true
	}
	start := pod.Status.StartTime
	return c.Status != corev1.ConditionTrue && (start == nil || !c.LastTransitionTime.After(start.Time))
}

// ContainersReady reports whether all containers are ready, whatever the pod's readiness gates say. The cache drops the condition
// of that name from ready pods, whose containers are ready.
func ContainersReady(pod *corev1.Pod) bool {
	if c := Condition(pod, corev1.ContainersReady); c != nil {
		return c.Status == corev1.ConditionTrue
	}
	return conditionTrue(pod, corev1.PodReady)
}

// Returning reports whether an unready pod is about to become ready: its containers and gates are, and the last gate was
// opened no earlier than its node reported it as unready.
func Returning(pod *corev1.Pod) bool {
	ready := Condition(pod, corev1.PodReady)
	if ready == nil || ready.Status == corev1.ConditionTrue || !ContainersReady(pod) {
		return false
	}
	var opened time.Time
	for _, g := range pod.Spec.ReadinessGates {
		c := Condition(pod, g.ConditionType)
		if c == nil || c.Status != corev1.ConditionTrue {
			return false
		}
		if c.LastTransitionTime.After(opened) {
			opened = c.LastTransitionTime.Time
		}
	}
	return !opened.IsZero() && !opened.Before(ready.LastTransitionTime.Time)
}

// Available reports whether a pod that became ready at a time has been ready for minReady. The kubelet's clock may be ahead:
// a pod that becomes ready in the future became ready now.
func Available(since time.Time, minReady time.Duration, now time.Time) bool {
	return max(now.Sub(since), 0) >= minReady // Sub saturates, so the zero time is long ago
}

// Terminating reports whether the pod is being deleted.
func Terminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// Finished reports whether the pod has failed or succeeded: its containers will never run again.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// goodService is how long a pod must have run so that its end says nothing about the next one.
const goodService = 10 * time.Minute

// EndedSoon reports whether a pod that has failed or succeeded did so soon after its kubelet took it on. A pod that was evicted after
// it ran for a while, for example, did not. A kubelet that starts again and rejects a pod, because the node has changed, removes all
// that the pod showed: then the time of the observation is the end.
func EndedSoon(pod *corev1.Pod, now time.Time) bool {
	began := pod.CreationTimestamp.Time
	consider := func(to *time.Time, t time.Time) {
		if t.After(*to) {
			*to = t
		}
	}
	if c := Condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue {
		consider(&began, c.LastTransitionTime.Time)
	}
	if pod.Status.StartTime != nil {
		consider(&began, pod.Status.StartTime.Time)
	}
	var ended time.Time
	for i := range pod.Status.ContainerStatuses {
		if t := pod.Status.ContainerStatuses[i].State.Terminated; t != nil {
			consider(&ended, t.FinishedAt.Time)
		}
	}
	for _, t := range []corev1.PodConditionType{corev1.PodReady, corev1.DisruptionTarget} {
		if c := Condition(pod, t); c != nil {
			consider(&ended, c.LastTransitionTime.Time)
		}
	}
	if ended.IsZero() {
		ended = now
	}
	return ended.Sub(began) < goodService
}

// Restarts returns the sum of the restarts of the containers that run as long as the pod does. Init containers that end
// before are not counted.
func Restarts(pod *corev1.Pod) int32 {
	var sum int64
	for i := range pod.Status.ContainerStatuses {
		sum += int64(max(pod.Status.ContainerStatuses[i].RestartCount, 0))
	}
	for i := range pod.Status.InitContainerStatuses {
		if s := &pod.Status.InitContainerStatuses[i]; restartable(pod, s.Name) {
			sum += int64(max(s.RestartCount, 0))
		}
	}
	return int32(min(sum, math.MaxInt32))
}

// Started returns when the last of the containers that run as long as the pod does was started; the zero time if none runs.
func Started(pod *corev1.Pod) (last time.Time) {
	consider := func(s *corev1.ContainerStatus) {
		if running := s.State.Running; running != nil && running.StartedAt.After(last) {
			last = running.StartedAt.Time
		}
	}
	for i := range pod.Status.ContainerStatuses {
		consider(&pod.Status.ContainerStatuses[i])
	}
	for i := range pod.Status.InitContainerStatuses {
		if s := &pod.Status.InitContainerStatuses[i]; restartable(pod, s.Name) {
			consider(s)
		}
	}
	return last
}

// DeletionCost returns the pod's controller.kubernetes.io/pod-deletion-cost. As in Kubernetes the value has no plus sign and
// no leading zeros; what is malformed counts as 0.
func DeletionCost(pod *corev1.Pod) int32 {
	value := pod.Annotations[corev1.PodDeletionCost]
	if value == "" || value[0] == '+' || value[0] == '0' {
		return 0
	}
	cost, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0
	}
	return int32(cost)
}

// Condition returns the pod's condition of a type; nil if there is none.
func Condition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == t {
			return c
		}
	}
	return nil
}

// conditionTrue reports whether the pod has a condition with status True.
func conditionTrue(pod *corev1.Pod, t corev1.PodConditionType) bool {
	c := Condition(pod, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// restartable reports whether the name is that of an init container that keeps running: a sidecar.
func restartable(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return false
}

// Mounts reports whether a pod mounts a claim of this name.
func Mounts(pod *corev1.Pod, claim string) bool {
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].PersistentVolumeClaim; source != nil && source.ClaimName == claim {
			return true
		}
	}
	return false
}
