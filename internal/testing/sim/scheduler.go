// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollset.dev/rollset/internal/simulator/actors"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// nodes is the number of nodes, and nodeCPU the CPU of each.
const (
	nodes   = 3
	nodeCPU = "4"
)

// scheduler knows the nodes of a world. A node runs any number of pods. A pod stays unscheduled if it alone requests more than a node
// has, if no node takes it, or if a claim of it does not exist or is being deleted.
type scheduler struct {
	actors.Scheduler

	world    *World
	cordoned bool
	// down are the zones whose nodes take no pods.
	down map[string]bool
}

func newScheduler(w *World) *scheduler {
	s := &scheduler{world: w}
	s.Scheduler = actors.Scheduler{
		Store: w.Store, Fit: s.fit, Counts: func(*corev1.Pod) bool { return true },
		Labels: func(node string) map[string]string { return w.NodeLabels()[node] },
	}
	return s
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// zoneOf returns the zone of a node: each is in its own.
func zoneOf(i int) string { return invariants.Letters(i) }

// changeNodes cordons all nodes or none. It does not lift the cordon of a single node.
func (s *scheduler) changeNodes(cordoned bool) {
	s.cordoned = cordoned
	s.retryAll()
}

// retryAll lets the scheduler look again at all pods that no node took.
func (s *scheduler) retryAll() { s.Retry(func(*corev1.Pod) bool { return true }) }

func (s *scheduler) turns(add func(turn)) {
	if s.Waits() {
		add(turn{who: actors.SchedulerName, at: s.world.Now(), take: func(context.Context) error { return s.Step() }})
	}
}

// fit implements actors.Scheduler.
func (s *scheduler) fit(pod *corev1.Pod) ([]string, *actors.Refusal) {
	switch why := s.refuse(pod); why {
	case "":
		return s.takers(pod), nil
	case gatedMessage:
		return nil, &actors.Refusal{Reason: corev1.PodReasonSchedulingGated, Message: why}
	default:
		return nil, &actors.Refusal{Reason: corev1.PodReasonUnschedulable, Message: why}
	}
}

// takers returns the nodes that take a pod. Without a pod it is about one that tolerates nothing.
func (s *scheduler) takers(pod *corev1.Pod) (names []string) {
	for i := range nodes {
		if s.takes(i, pod) {
			names = append(names, nodeName(i))
		}
	}
	return names
}

// gatedMessage is the API server's message for a pod with scheduling gates.
const gatedMessage = "Scheduling is blocked due to non-empty scheduling gates"

// refuse returns the scheduler's message if no node fits the pod, or a gate keeps it from looking; empty if one does.
func (s *scheduler) refuse(pod *corev1.Pod) string {
	if len(pod.Spec.SchedulingGates) > 0 {
		return gatedMessage
	}
	why := actors.MissingClaim(s.world.Store, pod)
	var cpu resource.Quantity
	for i := range pod.Spec.Containers {
		cpu.Add(*pod.Spec.Containers[i].Resources.Requests.Cpu())
	}
	switch {
	case why != "":
	case s.cordoned, len(s.takers(pod)) == 0:
		why = fmt.Sprintf("%d node(s) were unschedulable.", nodes)
	case cpu.Cmp(resource.MustParse(nodeCPU)) > 0:
		why = fmt.Sprintf("%d Insufficient cpu.", nodes)
	default:
		return ""
	}
	return fmt.Sprintf("0/%[1]d nodes are available: %[2]s preemption: 0/%[1]d nodes are available: %[1]d Preemption is not helpful for scheduling.", nodes, why)
}
