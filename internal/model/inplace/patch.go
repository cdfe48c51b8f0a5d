// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
)

// podPatch is a strategic merge patch of a pod. Containers are merged by name, and a key with a null value is deleted.
type podPatch struct {
	Metadata metadataPatch `json:"metadata"`
	Spec     specPatch     `json:"spec,omitzero"`
}

type metadataPatch struct {
	// UID and ResourceVersion are preconditions.
	UID             types.UID          `json:"uid"`
	ResourceVersion string             `json:"resourceVersion,omitempty"`
	Labels          map[string]*string `json:"labels,omitempty"`
	Annotations     map[string]*string `json:"annotations,omitempty"`
}

type specPatch struct {
	InitContainers []containerPatch `json:"initContainers,omitempty"`
	Containers     []containerPatch `json:"containers,omitempty"`
}

type containerPatch struct {
	Name      string                       `json:"name"`
	Image     string                       `json:"image,omitempty"`
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// Patch returns the strategic merge patch that moves images, labels, annotations, revision label and state annotation of a
// pod to a revision at once. It keeps what users added to the pod. The patch is for this pod only. If a container must
// restart, it is for the pod exactly as it was seen, because the state records what was before.
//
// It fails if the pod lacks a container whose image changes, or has more containers than the state can hold.
func Patch(pod *corev1.Pod, c Change, revision string) ([]byte, error) {
	patch := podPatch{Metadata: metadataPatch{
		UID:         pod.UID,
		Labels:      c.Labels.patch(),
		Annotations: c.Annotations.patch(),
	}}
	patch.Metadata.Labels[v1beta1.RevisionLabel] = &revision
	for _, name := range slices.Sorted(maps.Keys(c.Images)) {
		m, ok := find(&pod.Spec, name)
		if !ok {
			return nil, fmt.Errorf("patch pod %s: it has no container %s", pod.Name, name)
		}
		patch.Spec.add(m, containerPatch{Name: name, Image: c.Images[name]})
	}

	state := next(pod, c, revision)
	if len(state.Containers) > 0 {
		patch.Metadata.ResourceVersion = pod.ResourceVersion
	}
	if _, stale := pod.Annotations[StateAnnotation]; stale {
		patch.Metadata.Annotations[StateAnnotation] = nil
	}
	if !state.Empty() {
		value, err := json.Marshal(state)
		if err != nil {
			return nil, fmt.Errorf("patch pod %s: %w", pod.Name, err)
		}
		if len(value) > maxState {
			return nil, fmt.Errorf("patch pod %s: it has too many containers", pod.Name)
		}
		patch.Metadata.Annotations[StateAnnotation] = new(string(value))
	}
	return json.Marshal(patch)
}

// ResizePatch returns the strategic merge patch for the resize subresource of a pod that gives the named containers the
// cpu and memory of a template, or nil if they have them. Pass the names in [State.Resized], which is kept if the manager
// crashes between the two patches.
//
// It fails if the pod or the template lacks such a container.
func ResizePatch(pod *corev1.Pod, to *corev1.PodTemplateSpec, containers []string) ([]byte, error) {
	patch := podPatch{Metadata: metadataPatch{UID: pod.UID}}
	for _, name := range containers {
		m, inPod := find(&pod.Spec, name)
		wanted, inTemplate := find(&to.Spec, name)
		if !inPod || !inTemplate {
			return nil, fmt.Errorf("resize pod %s: it has no container %s", pod.Name, name)
		}
		if resources := effective(wanted.Resources); !covers(m.Resources, resources) {
			patch.Spec.add(m, containerPatch{Name: name, Resources: &resources})
		}
	}
	if patch.Spec.Containers == nil && patch.Spec.InitContainers == nil {
		return nil, nil
	}
	return json.Marshal(patch)
}

// add puts the patch of a member into the list that it belongs to.
func (s *specPatch) add(m member, c containerPatch) {
	if m.init {
		s.InitContainers = append(s.InitContainers, c)
		return
	}
	s.Containers = append(s.Containers, c)
}

// patch returns the change of keys in a merge patch. It is never nil.
func (k Keys) patch() map[string]*string {
	patch := make(map[string]*string, len(k.Set)+len(k.Removed)+1)
	for key, value := range k.Set {
		patch[key] = &value
	}
	for _, key := range k.Removed {
		patch[key] = nil
	}
	return patch
}

// covers reports whether resources include all wanted ones, with the wanted quantities.
func covers(has, wanted corev1.ResourceRequirements) bool {
	for _, name := range resizable() {
		_, requested := wanted.Requests[name]
		_, limited := wanted.Limits[name]
		if requested && !sameQuantity(has.Requests, wanted.Requests, name) ||
			limited && !sameQuantity(has.Limits, wanted.Limits, name) {
			return false
		}
	}
	return true
}
