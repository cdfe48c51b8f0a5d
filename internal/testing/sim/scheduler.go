// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// nodes is the number of nodes, and nodeCPU the CPU of each.
const (
	nodes   = 3
	nodeCPU = "4"
)

// scheduler binds pods to the node with the fewest. A node runs any number of pods. A pod stays unscheduled if it alone
// requests more than a node has, if no node takes it, or if a claim of it does not exist or is being deleted.
type scheduler struct {
	world    *World
	cordoned bool
	waiting  []apiserver.Key // pods to schedule, oldest first
	refused  []apiserver.Key // unscheduled pods; a change of the nodes, of their claims or of their requests brings them back
	load     [nodes]int
	// down are the zones whose nodes take no pods.
	down map[string]bool
}

func (s *scheduler) observe(e *apiserver.Entry) {
	if e.Key.Kind == apiserver.Claims && e.Old == nil {
		s.retry(func(pod apiserver.Key) bool {
			return slices.Contains(invariants.ClaimsOf(s.world.Store.Get(pod)), e.Key)
		})
	}
	if e.Key.Kind != apiserver.Pods {
		return
	}
	if e.Old == nil {
		s.waiting = append(s.waiting, e.Key)
	}
	if e.Subresource == "resize" || ungated(e) {
		s.retry(func(pod apiserver.Key) bool { return pod == e.Key })
	}
	for i := range nodes {
		s.load[i] += onNode(e.New, i) - onNode(e.Old, i)
	}
}

// ungated reports whether a write opens the scheduling gates of a pod.
func ungated(e *apiserver.Entry) bool {
	was, existed := e.Old.(*corev1.Pod)
	is, exists := e.New.(*corev1.Pod)
	return existed && exists && len(was.Spec.SchedulingGates) > 0 && len(is.Spec.SchedulingGates) == 0
}

func onNode(obj any, i int) int {
	if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName == nodeName(i) {
		return 1
	}
	return 0
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// zoneOf returns the zone of a node: each is in its own.
func zoneOf(i int) string { return invariants.Letters(i) }

// changeNodes cordons all nodes or none. It does not lift the cordon of a single node.
func (s *scheduler) changeNodes(cordoned bool) {
	s.cordoned = cordoned
	s.retry(func(apiserver.Key) bool { return true })
}

// retry puts unscheduled pods back into the queue.
func (s *scheduler) retry(hopeful func(pod apiserver.Key) bool) {
	refused := s.refused
	s.refused = nil
	for _, pod := range refused {
		if hopeful(pod) {
			s.waiting = append(s.waiting, pod)
		} else {
			s.refused = append(s.refused, pod)
		}
	}
}

func (s *scheduler) turns(add func(turn)) {
	if len(s.waiting) > 0 {
		add(turn{who: schedulerActor, at: s.world.Now(), take: func(context.Context) error { return s.schedule() }})
	}
}

// schedule handles the pod that has waited longest.
func (s *scheduler) schedule() error {
	key := s.waiting[0]
	s.waiting = s.waiting[1:]
	pod, ok := s.world.Store.Get(key).(*corev1.Pod)
	if !ok || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return nil
	}
	pod = apiserver.Clone(pod)
	if why := s.refuse(pod); why != "" {
		s.refused = append(s.refused, key)
		reason := corev1.PodReasonUnschedulable
		if why == gatedMessage {
			reason = corev1.PodReasonSchedulingGated
		}
		apiserver.SetPodCondition(&pod.Status, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason,
			Message: why, LastTransitionTime: s.world.Store.Stamp(),
		})
		_, err := s.world.Store.Update(apiserver.Write{Actor: schedulerActor, Subresource: "status"}, pod)
		return err
	}
	node := s.emptiest(pod)
	pod.Spec.NodeName = nodeName(node)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, corev1.LabelTopologyZone, zoneOf(node))
	_, err := s.world.Store.Update(apiserver.Write{Actor: schedulerActor, Subresource: "binding"}, pod)
	return err
}

// emptiest returns the node with the fewest pods, of those that take the pod; -1 if none does. Without a pod it is about one that
// tolerates nothing.
func (s *scheduler) emptiest(pod *corev1.Pod) int {
	best := -1
	for i, load := range s.load {
		if s.takes(i, pod) && (best < 0 || load < s.load[best]) {
			best = i
		}
	}
	return best
}

// gatedMessage is what the API server says of a pod with scheduling gates.
const gatedMessage = "Scheduling is blocked due to non-empty scheduling gates"

// refuse returns the scheduler's message if no node fits the pod, or a gate keeps it from looking; empty if one does.
func (s *scheduler) refuse(pod *corev1.Pod) string {
	if len(pod.Spec.SchedulingGates) > 0 {
		return gatedMessage
	}
	why := s.refuseClaims(pod)
	var cpu resource.Quantity
	for i := range pod.Spec.Containers {
		cpu.Add(*pod.Spec.Containers[i].Resources.Requests.Cpu())
	}
	switch {
	case why != "":
	case s.cordoned, s.emptiest(pod) < 0:
		why = fmt.Sprintf("%d node(s) were unschedulable.", nodes)
	case cpu.Cmp(resource.MustParse(nodeCPU)) > 0:
		why = fmt.Sprintf("%d Insufficient cpu.", nodes)
	default:
		return ""
	}
	return fmt.Sprintf("0/%[1]d nodes are available: %[2]s preemption: 0/%[1]d nodes are available: %[1]d Preemption is not helpful for scheduling.", nodes, why)
}

// refuseClaims returns the scheduler's message if a claim of the pod is not available; empty if all are.
func (s *scheduler) refuseClaims(pod *corev1.Pod) string {
	for _, key := range invariants.ClaimsOf(pod) {
		switch claim := s.world.Store.Get(key); {
		case claim == nil:
			return fmt.Sprintf("persistentvolumeclaim %q not found.", key.Name)
		case claim.GetDeletionTimestamp() != nil:
			return fmt.Sprintf("persistentvolumeclaim %q is being deleted.", key.Name)
		}
	}
	return ""
}
