// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	corev1 "k8s.io/api/core/v1"
)

// member is a container or init container of a pod. Their names are unique among both.
type member struct {
	*corev1.Container
	// path is where it stands.
	path string
	init bool
}

// members returns all containers of a pod in the order in which they start. Writing to them writes to the spec.
func members(spec *corev1.PodSpec) []member {
	all := make([]member, 0, len(spec.InitContainers)+len(spec.Containers))
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		all = append(all, member{Container: c, path: "spec.initContainers[" + c.Name + "]", init: true})
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		all = append(all, member{Container: c, path: "spec.containers[" + c.Name + "]"})
	}
	return all
}

// find returns the member of a name.
func find(spec *corev1.PodSpec, name string) (member, bool) {
	for _, m := range members(spec) {
		if m.Name == name {
			return m, true
		}
	}
	return member{}, false
}

// stays says whether the member runs as long as the pod does. An ordinary init container runs once, at the start.
func (m member) stays() bool {
	return !m.init || m.RestartPolicy != nil && *m.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
