// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resizable returns the resources that can be changed while a container runs.
func resizable() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// resizing judges and makes changes of a pod's resources.
type resizing struct{ *visit }

// considerResize takes up, puts off or ends the resize of a pod. An accepted one is announced by a condition and by
// allocatedResources; the containers' resources follow in a later event, and with them the condition goes.
func (v resizing) considerResize() {
	var wanted []member
	for _, c := range v.members() {
		if c.isOutOfSize() {
			wanted = append(wanted, c)
		}
	}
	if len(wanted) == 0 {
		v.dropCondition(corev1.PodResizePending)
		v.dropCondition(corev1.PodResizeInProgress)
		return
	}
	if reason, message := v.refuseResize(); reason != "" {
		v.dropCondition(corev1.PodResizeInProgress)
		v.setCondition(corev1.PodCondition{
			Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		})
		return
	}
	v.dropCondition(corev1.PodResizePending)
	v.setCondition(corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue})
	for _, c := range wanted {
		c.status.AllocatedResources = c.spec.Resources.Requests.DeepCopy()
	}
}

// refuseResize returns why a resize is deferred or infeasible; empty if it is neither.
func (v resizing) refuseResize() (reason, message string) {
	for _, name := range resizable() {
		capacity, limited := v.model.Allocatable[name]
		requested := v.requested(name)
		if limited && requested.Cmp(capacity) > 0 {
			return corev1.PodReasonInfeasible, fmt.Sprintf("Node didn't have enough capacity: %s, requested: %d, capacity: %d",
				name, amount(name, requested), amount(name, capacity))
		}
	}
	if _, ok := v.pod.Annotations[DeferResizeAnnotation]; ok {
		requested := v.requested(corev1.ResourceCPU)
		capacity, limited := v.model.Allocatable[corev1.ResourceCPU]
		if !limited {
			capacity = requested
		}
		return corev1.PodReasonDeferred, fmt.Sprintf("Node didn't have enough resource: cpu, requested: %d, used: %d, capacity: %d",
			requested.MilliValue(), capacity.MilliValue(), capacity.MilliValue())
	}
	return "", ""
}

// requested returns the sum of the requests of the pod's long-running containers.
func (v resizing) requested(name corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for _, c := range v.members() {
		if c.role != initOnce {
			sum.Add(c.spec.Resources.Requests[name])
		}
	}
	return sum
}

// amount returns a quantity in the unit of kubelet messages: thousandths of a CPU, bytes of memory.
func amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// isResizing reports whether the container runs and a resize of it was accepted and not carried out yet.
func (v resizing) isResizing(c member) bool {
	return c.isOutOfSize() && v.condition(corev1.PodResizeInProgress) != nil
}

// isOutOfSize reports whether the container runs with other resources than its spec has.
func (m member) isOutOfSize() bool {
	return m.role != initOnce && m.status.State.Running != nil && m.status.Resources != nil &&
		slices.ContainsFunc(resizable(), m.isChanged)
}

func (m member) isChanged(name corev1.ResourceName) bool {
	return !sameAmount(m.spec.Resources.Requests, m.status.Resources.Requests, name) ||
		!sameAmount(m.spec.Resources.Limits, m.status.Resources.Limits, name)
}

func sameAmount(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	left, inLeft := a[name]
	right, inRight := b[name]
	return inLeft == inRight && left.Cmp(right) == 0
}

// restartsForResize reports whether one of the resources that change needs a new container.
func restartsForResize(c member) bool {
	return slices.ContainsFunc(c.spec.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
		return p.RestartPolicy == corev1.RestartContainer && c.isChanged(p.ResourceName)
	})
}

// resourcesFor returns what a container gets that is started or resized now: what the spec asks for, or, while that is
// not granted, what the container had.
func (v resizing) resourcesFor(c member) corev1.ResourceRequirements {
	if c.status.Resources != nil && v.condition(corev1.PodResizePending) != nil {
		return *c.status.Resources.DeepCopy()
	}
	return *c.spec.Resources.DeepCopy()
}

// reportedResources returns the part of a container's resources that its status shows.
func reportedResources(r corev1.ResourceRequirements) *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{Requests: r.Requests.DeepCopy(), Limits: r.Limits.DeepCopy()}
}
