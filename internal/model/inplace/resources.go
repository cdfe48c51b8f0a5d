// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resizable returns the resources that can change in a running container. It is a function because Go has no constant
// slices.
func resizable() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// takeResources moves differences of cpu and memory from the containers of the old template to the change.
func takeResources(c *Change, rest, wanted []corev1.Container) {
	for i := range rest {
		r := &rest[i]
		j := slices.IndexFunc(wanted, func(w corev1.Container) bool { return w.Name == r.Name })
		if j < 0 {
			continue
		}
		w := &wanted[j]
		before, after := effective(r.Resources), effective(w.Resources)
		r.Resources.Requests = overlay(r.Resources.Requests, w.Resources.Requests)
		r.Resources.Limits = overlay(r.Resources.Limits, w.Resources.Limits)
		if takesAway(before.Requests, after.Requests) || takesAway(before.Limits, after.Limits) {
			continue // the API server refuses to remove a resource; it remains as a difference
		}
		changed := changedResources(before, after)
		if len(changed) == 0 {
			continue
		}
		if c.Resources == nil {
			c.Resources = make(map[string]corev1.ResourceRequirements)
		}
		c.Resources[r.Name] = after
		if slices.ContainsFunc(changed, func(name corev1.ResourceName) bool { return restartsFor(r, name) }) {
			c.Restarts = append(c.Restarts, r.Name)
		}
	}
}

// effective returns the cpu and memory that a pod gets: where a template has a limit and no request, the API server
// makes the limit the request.
func effective(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	var e corev1.ResourceRequirements
	for _, name := range resizable() {
		limit, limited := r.Limits[name]
		request, requested := r.Requests[name]
		if limited && !requested {
			request, requested = limit, true
		}
		if limited {
			e.Limits = with(e.Limits, name, limit)
		}
		if requested {
			e.Requests = with(e.Requests, name, request)
		}
	}
	return e
}

// with sets a resource of a list, which may be nil.
func with(list corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) corev1.ResourceList {
	if list == nil {
		list = make(corev1.ResourceList)
	}
	list[name] = quantity.DeepCopy()
	return list
}

// takesAway reports whether a resource is no longer there.
func takesAway(before, after corev1.ResourceList) bool {
	for name := range before {
		if _, ok := after[name]; !ok {
			return true
		}
	}
	return false
}

// overlay returns a list with the cpu and memory of another, where that has them.
func overlay(list, other corev1.ResourceList) corev1.ResourceList {
	for _, name := range resizable() {
		if quantity, ok := other[name]; ok {
			list = with(list, name, quantity)
		}
	}
	return list
}

// changedResources returns the resources whose request or limit differs.
func changedResources(before, after corev1.ResourceRequirements) []corev1.ResourceName {
	var changed []corev1.ResourceName
	for _, name := range resizable() {
		if !sameQuantity(before.Requests, after.Requests, name) || !sameQuantity(before.Limits, after.Limits, name) {
			changed = append(changed, name)
		}
	}
	return changed
}

func sameQuantity(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	x, inA := a[name]
	y, inB := b[name]
	return inA == inB && x.Cmp(y) == 0
}

// restartsFor reports whether a container restarts when a resource of it changes.
func restartsFor(container *corev1.Container, name corev1.ResourceName) bool {
	return slices.ContainsFunc(container.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
		return p.ResourceName == name && p.RestartPolicy == corev1.RestartContainer
	})
}

// otherQOS reports how the new resources change the QoS class, which is immutable; empty if they do not.
func (c Change) otherQOS(from, to *corev1.PodSpec) string {
	before, after := qosClass(from), qosClass(to)
	if before == after {
		return ""
	}
	name := ""
	if len(c.Resources) > 0 {
		name = slices.Min(slices.Collect(maps.Keys(c.Resources)))
	}
	return fmt.Sprintf("spec.containers[%s].resources: the QoS class would change from %s to %s", name, before, after)
}

// qosClass returns the QoS class of a pod of a template, as k8s.io/kubernetes/pkg/apis/core/v1/helper/qos computes it
// (Copyright 2017 The Kubernetes Authors, Apache-2.0): the one that all containers and both resources agree on, else
// Burstable.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	if r := spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		return qosOf(*r)
	}
	var class corev1.PodQOSClass
	for _, m := range members(spec) {
		switch of := qosOf(effective(m.Resources)); class {
		case "":
			class = of
		case of:
		default:
			return corev1.PodQOSBurstable
		}
	}
	return class
}

func qosOf(r corev1.ResourceRequirements) corev1.PodQOSClass {
	var class corev1.PodQOSClass
	for _, name := range resizable() {
		request, limit := r.Requests[name], r.Limits[name]
		of := corev1.PodQOSGuaranteed
		switch {
		case request.Cmp(limit) != 0:
			return corev1.PodQOSBurstable
		case request.IsZero():
			of = corev1.PodQOSBestEffort
		}
		if class != "" && class != of {
			return corev1.PodQOSBurstable
		}
		class = of
	}
	return class
}
