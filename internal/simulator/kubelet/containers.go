// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons that containers wait for, or ended for, as kubelets spell them.
const (
	reasonCreating         = "ContainerCreating"
	reasonInitializing     = "PodInitializing"
	reasonErrImagePull     = "ErrImagePull"
	reasonImagePullBackOff = "ImagePullBackOff"
	reasonInvalidImageName = "InvalidImageName"
	reasonCrashLoopBackOff = "CrashLoopBackOff"
	reasonCompleted        = "Completed"
	reasonError            = "Error"
	reasonUnknown          = "ContainerStatusUnknown"
)

// killedCode is the exit code of a process that was killed, or whose end was not seen.
const killedCode int32 = 137

// maxBackOffFactor is how many times the first back-off the longest one is.
const maxBackOffFactor = 30

// containers starts and stops the containers of a pod.
type containers struct{ *visit }

// apply changes the reported status of a container according to the task.
func (v containers) apply(c member, t task) {
	switch t.act {
	case start:
		v.start(c, t)
	case failPull:
		v.failPull(c, parseImage(t.image))
	case exit:
		code := parseImage(t.image).exitCode()
		v.stop(c, code)
		v.memory = v.memory.countCrash(c.spec.Name, v.backOffKey(c))
	case complete:
		v.stop(c, 0)
		c.status.Ready = true
	case backOff:
		c.status.LastTerminationState = c.status.State
		c.status.State = waiting(reasonCrashLoopBackOff, v.backOffMessage(c, v.crashDelay(c)))
	case passProbe:
		c.status.Ready = true
		c.status.Started = new(true)
	case applyResize:
		c.status.Resources = reportedResources(t.resources)
	case nothing, makeSandbox:
	}
}

// start replaces the container in one event: image, IDs, state and count change together.
func (v containers) start(c member, t task) {
	v.clearAway(c)
	i := parseImage(t.image)
	if c.status.ContainerID != "" {
		c.status.RestartCount++
	}
	c.status.Image = i.reported()
	c.status.ImageID = i.id()
	c.status.ContainerID = containerID(v.pod, c.spec.Name, c.status.RestartCount, t.image)
	c.status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: v.timestamp()}}
	c.status.Started = new(c.spec.StartupProbe == nil)
	c.status.Ready = c.startsReady(i) && !transitions(v).isWithheld()
	c.status.Resources = reportedResources(t.resources)
	c.status.AllocatedResources = t.resources.Requests.DeepCopy()
	conditions(v).setPodIP()
}

// failPull reports one more failed attempt to pull an image. Of the container that was there before, image, IDs and
// restart count stay. The reasons alternate; CrashLoopBackOff is among them once a container has run.
func (v containers) failPull(c member, i image) {
	v.clearAway(c)
	failure := fmt.Sprintf("failed to pull and unpack image %q: failed to resolve image: not found", i.reference)
	switch reason := c.waitingReason(); {
	case i.isInvalid():
		c.status.State = waiting(reasonInvalidImageName, fmt.Sprintf("Failed to apply default image tag %q: couldn't parse image name %q: "+
			"invalid reference format", i.reference, i.reference))
	case reason == reasonErrImagePull:
		c.status.State = waiting(reasonImagePullBackOff, fmt.Sprintf("Back-off pulling image %q: %s: %s", i.reference, reasonErrImagePull, failure))
	case reason == reasonImagePullBackOff && c.status.ContainerID != "":
		c.status.State = waiting(reasonCrashLoopBackOff, v.backOffMessage(c, v.model.backOff()))
	default:
		c.status.State = waiting(reasonErrImagePull, failure)
	}
	c.status.Ready = false
	c.status.Started = new(false)
	conditions(v).setPodIP()
}

// clearAway ends the container that still runs, and moves its end to where the last one is kept.
func (v containers) clearAway(c member) {
	if c.status.State.Running != nil {
		v.stop(c, v.killCode())
	}
	if c.status.State.Terminated != nil {
		c.status.LastTerminationState = c.status.State
		c.status.State = corev1.ContainerState{}
	}
}

// stop ends a running container.
func (v containers) stop(c member, code int32) {
	reason := reasonCompleted
	if code != 0 {
		reason = reasonError
	}
	c.status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode:    code,
		Reason:      reason,
		StartedAt:   c.status.State.Running.StartedAt,
		FinishedAt:  v.timestamp(),
		ContainerID: c.status.ContainerID,
	}}
	c.status.Ready = false
	c.status.Started = new(false)
}

// grace returns the pod's own bound on the time that a container may take to end.
func (v containers) grace() time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if own := v.pod.Spec.TerminationGracePeriodSeconds; own != nil {
		seconds = *own
	}
	return time.Duration(seconds) * time.Second
}

// killDelay returns the time that a container takes to end when it is replaced, killCode the code it exits with.
func (v containers) killDelay() time.Duration { return min(v.model.TermDelay, v.grace()) }

func (v containers) killCode() int32 {
	if v.model.TermDelay > v.grace() {
		return killedCode
	}
	return 0
}

// crashDelay returns the back-off of the container after its last exit. There is none after the first exit, or if the
// container's spec has changed since.
func (v containers) crashDelay(c member) time.Duration {
	count := v.memory.crashCount(c.spec.Name, v.backOffKey(c))
	if count < 2 {
		return 0
	}
	delay := v.model.backOff()
	for range count - 2 {
		if delay *= 2; delay >= maxBackOffFactor*v.model.backOff() {
			return maxBackOffFactor * v.model.backOff()
		}
	}
	return delay
}

// backOffKey returns the key of a back-off: the container with its image and resources.
func (v containers) backOffKey(c member) string {
	r := resizing(v).resourcesFor(c)
	return fmt.Sprintf("%s|%s/%s|%s/%s", c.spec.Image,
		r.Requests.Cpu(), r.Requests.Memory(), r.Limits.Cpu(), r.Limits.Memory())
}

func (v containers) backOffMessage(c member, delay time.Duration) string {
	return fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
		delay, c.spec.Name, v.pod.Name, v.pod.Namespace, v.pod.UID)
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}
