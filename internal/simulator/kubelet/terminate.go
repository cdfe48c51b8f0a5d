// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	reasonEvicted    = "Evicted"
	messageEvicted   = "The node was low on resource: memory."
	messageUnlocated = "The container could not be located when the pod was terminated"
)

func isEvicted(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[EvictAnnotation]
	return ok
}

// termination ends a pod.
type termination struct{ *visit }

// terminate takes a deleted pod to its end. The deletion is observed at once; while the containers take their time
// the pod stays as it was, Ready included, and changes of its spec come to nothing.
func (v termination) terminate() {
	if v.status.StartTime == nil {
		v.introduce()
	}
	if v.memory.terminatingSince.IsZero() {
		v.memory = Memory{awake: true, terminatingSince: v.now}
		v.status.ObservedGeneration = v.pod.Generation
		v.giveUpWaiting()
		v.report()
		v.waitUntil(v.containersEnd())
		return
	}
	if v.containersEnd().After(v.now) {
		v.waitUntil(v.containersEnd())
		return
	}
	if !v.hasRun() && v.hasSandbox() {
		// Containers that never ran are accounted for once the sandbox is gone.
		v.setCondition(corev1.PodCondition{
			Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, Reason: reasonSandboxNotReady, Message: messageSandboxNotReady,
		})
		v.waitUntil(v.now)
		return
	}
	code := int32(0)
	if v.model.TermDelay > v.deletionGrace() {
		code = killedCode
	}
	v.status.ObservedGeneration = v.pod.Generation
	v.finish(code)
	v.memory.removedAt = v.now.Add(v.model.RemoveDelay)
	v.waitUntil(v.memory.removedAt)
}

// giveUpWaiting shows containers that are held back as they are: ended, or never made.
func (v termination) giveUpWaiting() {
	for _, c := range v.members() {
		switch last := c.status.LastTerminationState.Terminated; {
		case c.status.State.Waiting == nil:
		case last != nil:
			c.status.State = corev1.ContainerState{Terminated: last.DeepCopy()}
		case c.waitingReason() != reasonInitializing:
			c.status.State = waiting(reasonCreating, "")
		}
	}
}

// deletionGrace returns the grace period of the deletion, which may be shorter than the pod's own.
func (v termination) deletionGrace() time.Duration {
	if seconds := v.pod.DeletionGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return containers(v).grace()
}

// containersEnd returns when the containers of a deleted pod have ended. A second, shorter deletion brings it forward.
func (v termination) containersEnd() time.Time {
	return v.memory.terminatingSince.Add(min(v.model.TermDelay, v.deletionGrace()))
}

// evict ends a pod without deleting it, as a node does that runs out of memory.
func (v termination) evict() {
	if v.status.StartTime == nil {
		v.introduce()
	}
	v.status.ObservedGeneration = v.pod.Generation
	v.status.Phase = corev1.PodFailed
	v.status.Reason = reasonEvicted
	v.status.Message = messageEvicted
	v.setCondition(corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: corev1.PodReasonTerminationByKubelet, Message: messageEvicted,
	})
	v.finish(killedCode)
	v.memory = Memory{awake: true}
}

// finish ends all containers, those that run with the given code, and with them the pod.
func (v termination) finish(code int32) {
	failed := v.status.Phase == corev1.PodFailed
	for _, c := range v.members() {
		v.end(c, code)
		failed = failed || c.role != sidecar && c.status.State.Terminated.ExitCode != 0
	}
	v.status.Phase = corev1.PodSucceeded
	if failed {
		v.status.Phase = corev1.PodFailed
	}
	conditions(v).reportConditions(v.status.Phase)
}

// end makes a container terminated. For one that waits, its last end counts. One that never ran gets an unknown end.
func (v termination) end(c member, code int32) {
	switch last := c.status.LastTerminationState.Terminated; {
	case c.status.State.Running != nil:
		containers(v).stop(c, code)
	case c.status.State.Terminated != nil:
	case last != nil:
		c.status.State = corev1.ContainerState{Terminated: last.DeepCopy()}
	default:
		c.status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: killedCode, Reason: reasonUnknown, Message: messageUnlocated,
		}}
	}
	c.status.Ready = c.status.Ready && c.role == initOnce
	c.status.Started = new(false)
}

// letGo requests the removal of the object of a finished pod, some time after it was deleted. With the grace period 0 this has
// been requested already, and only the finalizers of other programs remain.
func (v termination) letGo() {
	if v.pod.DeletionTimestamp == nil || v.deletionGrace() == 0 {
		return
	}
	if v.memory.removedAt.IsZero() {
		v.memory.removedAt = v.now.Add(v.model.RemoveDelay)
	}
	if v.memory.removedAt.After(v.now) {
		v.waitUntil(v.memory.removedAt)
		return
	}
	v.remove = true
}
