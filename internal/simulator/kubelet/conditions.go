// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Reasons of conditions, as kubelets spell them.
const (
	reasonSandboxNotReady  = "PodSandboxNotReady"
	reasonNotInitialized   = "ContainersNotInitialized"
	reasonNotReady         = "ContainersNotReady"
	reasonGatesNotReady    = "ReadinessGatesNotReady"
	reasonPodCompleted     = "PodCompleted"
	reasonPodFailed        = "PodFailed"
	messageNoSandbox       = "no pod sandbox exists"
	messageSandboxNotReady = "pod sandbox is not ready"
)

// conditions keeps the conditions and the phase of a pod's status.
type conditions struct{ *visit }

// reportConditions writes the kubelet's own five conditions, as they are in a phase. All others belong to someone else,
// and are kept.
func (v conditions) reportConditions(phase corev1.PodPhase) {
	v.setCondition(v.sandboxCondition())
	v.setCondition(v.initializedCondition())
	containersReady := v.containersReadyCondition(phase)
	v.setCondition(v.readyCondition(containersReady))
	v.setCondition(containersReady)
	v.setCondition(corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	for _, t := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		if c := v.condition(t); c != nil {
			c.ObservedGeneration = v.status.ObservedGeneration
		}
	}
}

// Owns reports whether conditions of a type are written by kubelets. All others belong to someone else.
func Owns(t corev1.PodConditionType) bool {
	switch t {
	case corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
		corev1.PodResizePending, corev1.PodResizeInProgress:
		return true
	default:
		return false
	}
}

func (v *visit) condition(t corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(v.status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &v.status.Conditions[i]
}

// reasonOf returns the reason of a condition; empty if there is none.
func (v conditions) reasonOf(t corev1.PodConditionType) string {
	if c := v.condition(t); c != nil {
		return c.Reason
	}
	return ""
}

// setCondition writes a condition with the generation observed. The time of its last transition moves only when its
// status does.
func (v *visit) setCondition(c corev1.PodCondition) {
	c.ObservedGeneration = v.status.ObservedGeneration
	c.LastTransitionTime = v.timestamp()
	old := v.condition(c.Type)
	if old == nil {
		v.status.Conditions = append(v.status.Conditions, c)
		return
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	c.LastProbeTime = old.LastProbeTime
	*old = c
}

func (v *visit) dropCondition(t corev1.PodConditionType) {
	v.status.Conditions = slices.DeleteFunc(v.status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
}

func (v *visit) hasSandbox() bool {
	c := v.condition(corev1.PodReadyToStartContainers)
	return c != nil && c.Status == corev1.ConditionTrue
}

func (v conditions) sandboxCondition() corev1.PodCondition {
	switch c := (corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}); {
	case isFinished(v.status.Phase):
		c.Reason, c.Message = reasonSandboxNotReady, messageSandboxNotReady
		return c
	case !v.hasSandbox():
		c.Reason, c.Message = reasonSandboxNotReady, messageNoSandbox
		return c
	default:
		c.Status = corev1.ConditionTrue
		return c
	}
}

// initializedCondition returns the condition Initialized. It stays True from the first start of an app container on,
// even if sidecars end.
func (v conditions) initializedCondition() corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if v.status.Phase == corev1.PodSucceeded {
		c.Reason = reasonPodCompleted
		return c
	}
	if incomplete := v.incomplete(); len(incomplete) > 0 && !v.hasRun() {
		c.Status = corev1.ConditionFalse
		c.Reason = reasonNotInitialized
		c.Message = fmt.Sprintf("containers with incomplete status: %s", incomplete)
	}
	return c
}

// incomplete names the init containers that have not done their part.
func (v conditions) incomplete() []string {
	var names []string
	for _, m := range v.members() {
		if !m.isInitialized() {
			names = append(names, m.spec.Name)
		}
	}
	return names
}

// hasRun reports whether any app container has ever been started.
func (v *visit) hasRun() bool {
	return slices.ContainsFunc(v.members(), func(m member) bool { return m.role == app && m.status.ContainerID != "" })
}

// containersReadyCondition gives the end as the reason only if anything ever ran.
func (v conditions) containersReadyCondition(phase corev1.PodPhase) corev1.PodCondition {
	c := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}
	if reason := endReason(phase); reason != "" && v.hasRun() {
		c.Reason = reason
		return c
	}
	var unready []string
	for _, m := range v.members() {
		if m.role != initOnce && !m.status.Ready {
			unready = append(unready, m.spec.Name)
		}
	}
	if len(unready) > 0 {
		c.Reason = reasonNotReady
		c.Message = fmt.Sprintf("containers with unready status: %s", unready)
		return c
	}
	c.Status = corev1.ConditionTrue
	return c
}

// readyCondition is ContainersReady and all readiness gates. The gates' conditions are only read.
func (v conditions) readyCondition(containersReady corev1.PodCondition) corev1.PodCondition {
	c := containersReady
	c.Type = corev1.PodReady
	if c.Status != corev1.ConditionTrue {
		return c
	}
	var shut []string
	for _, gate := range v.pod.Spec.ReadinessGates {
		switch state := v.condition(gate.ConditionType); {
		case state == nil:
			shut = append(shut, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case state.Status != corev1.ConditionTrue:
			shut = append(shut, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, state.Status))
		}
	}
	if len(shut) > 0 {
		c.Status = corev1.ConditionFalse
		c.Reason = reasonGatesNotReady
		c.Message = strings.Join(shut, ", ")
	}
	return c
}

// phase sums up the containers of a pod that has not finished.
func (v conditions) phase() corev1.PodPhase {
	if len(v.incomplete()) > 0 && !v.hasRun() {
		if v.hasFailedInit() {
			return corev1.PodFailed
		}
		return corev1.PodPending
	}
	done, failed := true, false
	for _, m := range v.members() {
		if m.role != app {
			continue
		}
		if m.status.State.Waiting != nil && m.status.LastTerminationState.Terminated == nil {
			return corev1.PodPending
		}
		end := m.status.State.Terminated
		done = done && end != nil && !m.restartsAfter(end.ExitCode, v.pod.Spec.RestartPolicy)
		failed = failed || end != nil && end.ExitCode != 0
	}
	switch {
	case !done:
		return corev1.PodRunning
	case failed:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}

// hasFailedInit reports whether an init container failed that is not tried again.
func (v conditions) hasFailedInit() bool {
	return slices.ContainsFunc(v.members(), func(m member) bool {
		end := m.status.State.Terminated
		return m.role == initOnce && end != nil && end.ExitCode != 0 && !m.restartsAfter(end.ExitCode, v.pod.Spec.RestartPolicy)
	})
}

// endReason is why nothing of a finished pod is ready; empty for all others.
func endReason(phase corev1.PodPhase) string {
	switch phase {
	case corev1.PodSucceeded:
		return reasonPodCompleted
	case corev1.PodFailed:
		return reasonPodFailed
	default:
		return ""
	}
}

func isFinished(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// setPodIP gives the pod its address, out of a block that is kept for benchmarks. It depends only on the pod's UID. Two
// pods may share an address, which is harmless because nothing listens there.
func (v conditions) setPodIP() {
	if v.status.PodIP != "" {
		return
	}
	sum := sha256.Sum256([]byte(v.pod.UID))
	v.status.PodIP = fmt.Sprintf("198.%d.%d.%d", 18+sum[0]%2, sum[1], sum[2])
	v.status.PodIPs = []corev1.PodIP{{IP: v.status.PodIP}}
}
