// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// WhyLimit is the largest number of bytes of what Why returns.
const WhyLimit = 256

// Why returns one sentence about what keeps the pod from being ready, in the cluster's own words; empty for a pod that is
// ready and stays.
//
// The sentence stays the same as long as the cause does. The kubelet alternates between several ways to report one cause,
// and counts seconds and restarts in them. Here every cause has one text without numbers that grow.
func Why(pod *corev1.Pod) string {
	_, ready := ReadySince(pod)
	if ready && !Terminating(pod) && !Finished(pod) {
		return ""
	}
	return cmp.Or(Printable(why(pod), WhyLimit), "not ready")
}

func why(pod *corev1.Pod) string {
	switch {
	case Terminating(pod):
		return whyTerminating(pod)
	case Finished(pod):
		return whyFinished(pod)
	case !Scheduled(pod):
		return whyUnscheduled(pod)
	case conditionTrue(pod, corev1.ContainersReady):
		return whyGated(pod)
	case len(pod.Status.ContainerStatuses) == 0 && len(pod.Status.InitContainerStatuses) == 0:
		return onNode(pod, "not started yet")
	}
	if s := whyContainers(pod); s != "" {
		return s
	}
	if c := Condition(pod, corev1.PodReady); c != nil {
		return join(c.Reason, c.Message)
	}
	return ""
}

func whyTerminating(pod *corev1.Pod) string {
	s := "Terminating"
	if !Finished(pod) {
		s = onNode(pod, s)
	}
	if !Finished(pod) && Unreachable(pod) {
		s += ", which does not answer: if it is off, taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, or delete the Node"
	}
	if len(pod.Finalizers) > 0 {
		s += ": blocked by finalizers " + strings.Join(pod.Finalizers, ", ")
	}
	return s
}

// onNode adds the node to a text about a pod that has one.
func onNode(pod *corev1.Pod, s string) string {
	if pod.Spec.NodeName == "" {
		return s
	}
	return s + " on node " + pod.Spec.NodeName
}

func whyFinished(pod *corev1.Pod) string {
	phase := string(pod.Status.Phase)
	if pod.Status.Reason != "" || pod.Status.Message != "" {
		return join(phase, pod.Status.Reason, pod.Status.Message)
	}
	for _, c := range containers(pod) {
		if t := c.status.State.Terminated; t != nil && t.ExitCode != 0 {
			return join(phase, c.String(), exit(t))
		}
	}
	return phase
}

func whyUnscheduled(pod *corev1.Pod) string {
	c := Condition(pod, corev1.PodScheduled)
	if c == nil {
		return "not scheduled yet"
	}
	// What preemption would have done is not a cause, and it changes with every other pod of the cluster.
	message, _, _ := strings.Cut(c.Message, " preemption:")
	return join(c.Reason, message)
}

// whyGated explains an unready pod whose containers are ready: by a readiness gate, or by an unreachable node, for which the
// control plane changes only the condition Ready.
func whyGated(pod *corev1.Pod) string {
	switch gate := closedGate(pod); {
	case gate != "":
		return gate
	case pod.Spec.NodeName == "":
		return "not ready though its containers are"
	default:
		return fmt.Sprintf("node %s is unreachable: not ready though its containers are", pod.Spec.NodeName)
	}
}

// Unreachable reports whether the node of a pod does not answer: the control plane says so by the condition Ready alone.
func Unreachable(pod *corev1.Pod) bool {
	_, ready := ReadySince(pod)
	return pod.Spec.NodeName != "" && !ready && conditionTrue(pod, corev1.ContainersReady) && closedGate(pod) == ""
}

// closedGate returns what the first readiness gate that is not True says; empty if all are.
func closedGate(pod *corev1.Pod) string {
	for _, g := range pod.Spec.ReadinessGates {
		c := Condition(pod, g.ConditionType)
		switch {
		case c == nil:
			return fmt.Sprintf("readiness gate %s is not set", g.ConditionType)
		case c.Status == corev1.ConditionTrue:
			continue
		case c.Reason != "":
			return fmt.Sprintf("readiness gate %s is %s (%s)", g.ConditionType, c.Status, c.Reason)
		default:
			return fmt.Sprintf("readiness gate %s is %s", g.ConditionType, c.Status)
		}
	}
	return ""
}

// join joins the non-empty texts with colons.
func join(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(p)
	}
	return b.String()
}
