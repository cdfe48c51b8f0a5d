// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1alpha1"
)

const (
	// StateAnnotation carries, on a pod, the [State] of its update in place.
	StateAnnotation = "apps.rollset.dev/in-place-update"

	// maxState bounds the length of the annotation. Some fifty containers fit in.
	maxState = 16 << 10
)

// State is what a pod was like when its update in place was written: what the kubelet has to change until it is done.
// It only ever delays. Nothing that somebody may have put into it finds its way into a write, not even into the next
// state: of an earlier one, only numbers and what the pod says too are taken over.
type State struct {
	// Revision is the revision that the pod goes to.
	Revision string `json:"revision"`
	// Generation is the generation of the pod with the new images.
	Generation int64 `json:"generation"`
	// Containers are the containers that must restart, by name.
	Containers map[string]Container `json:"containers,omitempty"`
	// Resized names the containers that must get the resources of the revision, in order.
	Resized []string `json:"resized,omitempty"`
}

// Container is a container that must restart.
type Container struct {
	// ID is the containerID before; empty if there was none.
	ID string `json:"id,omitempty"`
	// Image is a hash of the image that the spec had for that container; 0 if that is not certain.
	Image uint64 `json:"image,omitempty"`
	// Overlap is true if an earlier update of the container was not done: then another ID is no proof of the new image.
	Overlap bool `json:"overlap,omitempty"`
}

// Empty says whether there is nothing to wait for.
func (s State) Empty() bool { return len(s.Containers) == 0 && len(s.Resized) == 0 }

// Restarts says whether the update of a state restarts a container of a pod, for a new image or because its resizePolicy
// says so.
func (s State) Restarts(pod *corev1.Pod) bool {
	if len(s.Containers) > 0 {
		return true
	}
	for _, name := range s.Resized {
		m, ok := find(&pod.Spec, name)
		if ok && slices.ContainsFunc(resizable(), func(r corev1.ResourceName) bool { return restartsFor(m.Container, r) }) {
			return true
		}
	}
	return false
}

// ParseState reads the value of the state annotation. It accepts only what this package writes, byte for byte: no more
// than 16 KiB, no unknown key, no key twice, nothing behind the end.
func ParseState(value string) (State, error) {
	if len(value) > maxState {
		return State{}, errors.New("longer than 16 KiB")
	}
	var s State
	if err := json.Unmarshal([]byte(value), &s); err != nil {
		return State{}, errors.New("not a state")
	}
	written, err := json.Marshal(s)
	if err != nil || !bytes.Equal(written, []byte(value)) {
		return State{}, errors.New("not as the controller writes it")
	}
	return s, nil
}

// StateOf returns the state of a pod's update in place. It is empty if the annotation is missing, cannot be read, or
// speaks of another revision than the pod is at or of a generation that it never had; the error is not nil then if there
// is an annotation.
func StateOf(pod *corev1.Pod) (State, error) {
	value, ok := pod.Annotations[StateAnnotation]
	if !ok {
		return State{}, nil
	}
	s, err := ParseState(value)
	switch {
	case err != nil:
		return State{}, fmt.Errorf("annotation %s: %w", StateAnnotation, err)
	case s.Revision != pod.Labels[v1alpha1.RevisionLabel]:
		return State{}, fmt.Errorf("annotation %s: not of this revision", StateAnnotation)
	case s.Generation > pod.Generation:
		return State{}, fmt.Errorf("annotation %s: of a generation to come", StateAnnotation)
	}
	return s, nil
}

// next is the state of a pod once a change that makes it one of a revision is written: what the change brings, and what
// an earlier one has left undone.
func next(pod *corev1.Pod, c Change, revision string) State {
	earlier, _ := StateOf(pod) // one that cannot be read counts for nothing
	s := State{Revision: revision, Generation: pod.Generation, Containers: unfinished(pod, earlier)}
	unobserved := changedUnseen(pod, earlier)
	for name, image := range c.Images {
		m, ok := find(&pod.Spec, name)
		if !ok || m.Image == image {
			continue // nothing changes for the kubelet
		}
		if pod.Generation > 0 { // API servers older than 1.33 do not count
			s.Generation = pod.Generation + 1
		}
		container, waiting := s.Containers[name]
		switch {
		case waiting:
			container.Overlap = true
		case unobserved:
			container = Container{ID: statusOf(pod, name).ContainerID, Overlap: true}
		default:
			container = Container{ID: statusOf(pod, name).ContainerID, Image: hashOf(m.Image)}
		}
		s.Containers[name] = container
	}
	for _, m := range members(&pod.Spec) {
		if _, ok := c.Resources[m.Name]; ok || slices.Contains(earlier.Resized, m.Name) {
			s.Resized = append(s.Resized, m.Name)
		}
	}
	slices.Sort(s.Resized)
	return s
}

// unfinished returns the containers that an earlier update still waits for.
func unfinished(pod *corev1.Pod, earlier State) map[string]Container {
	left := make(map[string]Container)
	for name, container := range earlier.Containers {
		m, ok := find(&pod.Spec, name)
		if !ok || restarted(pod, m, earlier) == "" {
			continue
		}
		if id := statusOf(pod, name).ContainerID; container.ID != id {
			container = Container{ID: id, Overlap: true}
		}
		left[name] = container
	}
	return left
}

// changedUnseen says whether somebody else has changed a pod, and its kubelet has not looked at it yet.
func changedUnseen(pod *corev1.Pod, earlier State) bool {
	ours := earlier.Generation
	if len(earlier.Resized) > 0 {
		ours++
	}
	return pod.Generation > ours && pod.Status.ObservedGeneration > 0 && pod.Status.ObservedGeneration < pod.Generation
}

// hashOf makes a number of an image.
func hashOf(image string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(image)) // a hash takes everything
	return h.Sum64()
}
