// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	corev1 "k8s.io/api/core/v1"
)

// role is a container's place in its pod.
type role int

const (
	app      role = iota
	sidecar       // an init container with restartPolicy Always: started in order, then kept running
	initOnce      // an ordinary init container: runs once, and is never looked at again
)

// member is one container of the pod: its spec and its reported status.
type member struct {
	role   role
	spec   *corev1.Container
	status *corev1.ContainerStatus
}

// members lists the pod's containers in the order in which they start. Containers without a status are left out:
// the API server does not let containers be added to a pod.
func (v *visit) members() []member {
	members := make([]member, 0, len(v.pod.Spec.InitContainers)+len(v.pod.Spec.Containers))
	add := func(containers []corev1.Container, statuses []corev1.ContainerStatus, isInit bool) {
		for i := range containers {
			if status := statusOf(statuses, containers[i].Name); status != nil {
				members = append(members, member{role: roleOf(&containers[i], isInit), spec: &containers[i], status: status})
			}
		}
	}
	add(v.pod.Spec.InitContainers, v.status.InitContainerStatuses, true)
	add(v.pod.Spec.Containers, v.status.ContainerStatuses, false)
	return members
}

func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

func roleOf(container *corev1.Container, isInit bool) role {
	switch {
	case !isInit:
		return app
	case container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways:
		return sidecar
	default:
		return initOnce
	}
}

// isInitialized reports whether an init container lets the next one start.
func (m member) isInitialized() bool {
	switch m.role {
	case sidecar:
		return m.status.Started != nil && *m.status.Started
	case initOnce:
		return m.status.State.Terminated != nil && m.status.State.Terminated.ExitCode == 0
	default:
		return true
	}
}

// restartsAfter reports whether the container is started again after it exited with this code.
func (m member) restartsAfter(code int32, policy corev1.RestartPolicy) bool {
	switch {
	case m.role == sidecar:
		return true
	case m.role == initOnce, policy == corev1.RestartPolicyOnFailure:
		return code != 0 && policy != corev1.RestartPolicyNever
	default:
		return policy != corev1.RestartPolicyNever
	}
}

// startsReady reports whether the container counts as ready as soon as it runs: it has no probe to wait for.
func (m member) startsReady(i image) bool {
	return m.role != initOnce && m.spec.ReadinessProbe == nil && m.spec.StartupProbe == nil && !i.isBroken() && !i.isSlow()
}

// waitingReason returns the reason for which the container is waiting; empty if it is not.
func (m member) waitingReason() string {
	if m.status.State.Waiting == nil {
		return ""
	}
	return m.status.State.Waiting.Reason
}

// stateName returns a word for the container's state, which is part of its situation.
func (m member) stateName() string {
	switch {
	case m.status.State.Running != nil:
		return "running"
	case m.status.State.Terminated != nil:
		return "terminated"
	default:
		return m.waitingReason()
	}
}
