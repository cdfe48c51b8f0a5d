// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	corev1 "k8s.io/api/core/v1"
)

// member is a container or init container of a pod. Their names are unique among both.
type member struct {
	*corev1.Container
	init bool
}

// path returns the path of the member in the spec.
func (m member) path() string {
	if m.init {
		return "spec.initContainers[" + m.Name + "]"
	}
	return "spec.containers[" + m.Name + "]"
}

// members returns all containers of a pod in the order in which they start. Writing to them writes to the spec.
func members(spec *corev1.PodSpec) []member {
	all := make([]member, 0, len(spec.InitContainers)+len(spec.Containers))
	for i := range spec.InitContainers {
		all = append(all, member{Container: &spec.InitContainers[i], init: true})
	}
	for i := range spec.Containers {
		all = append(all, member{Container: &spec.Containers[i]})
	}
	return all
}

// find returns the member of a name.
func find(spec *corev1.PodSpec, name string) (member, bool) {
	for i := range spec.InitContainers {
		if spec.InitContainers[i].Name == name {
			return member{Container: &spec.InitContainers[i], init: true}, true
		}
	}
	for i := range spec.Containers {
		if spec.Containers[i].Name == name {
			return member{Container: &spec.Containers[i]}, true
		}
	}
	return member{}, false
}

// stays reports whether the member runs as long as the pod does. An ordinary init container runs once, at the start.
func (m member) stays() bool {
	return !m.init || m.RestartPolicy != nil && *m.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
