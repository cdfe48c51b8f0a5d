// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
)

const (
	// StateAnnotation carries, on a pod, the [State] of its update in place.
	StateAnnotation = "apps.rollset.dev/in-place-update"

	// maxState bounds the length of the annotation. Some fifty containers fit in.
	maxState = 16 << 10
)

// State records a pod as it was when its update in place was written, and so what the kubelet must change until the update is done.
// It can only delay. No content that another client may have put into it gets into a write, not even into the next state: only
// numbers, and what the pod confirms, are taken over.
type State struct {
	// Revision is the revision that the pod goes to.
	Revision string `json:"revision"`
	// Generation is the generation that the pod had when this was written.
	Generation int64 `json:"generation"`
	// Containers are the containers that must restart, by name.
	Containers map[string]Container `json:"containers,omitempty"`
	// Resized names the containers that must get the resources of the revision, in order.
	Resized []string `json:"resized,omitempty"`
}

// Container is a container that must restart.
type Container struct {
	// ID is the containerID before; empty if there was none, or if the container was replaced already.
	ID string `json:"id,omitempty"`
	// Image is a hash of the image that the spec had for that container; 0 if that is not certain.
	Image uint64 `json:"image,omitempty"`
	// Content is a hash of the imageID before; 0 if another one proves nothing, because there was none, or because an
	// earlier update of the container was not done and may have caused it.
	Content uint64 `json:"content,omitempty"`
	// Alike is true if the container before seemed to run the new image already: then that is no proof.
	Alike bool `json:"alike,omitempty"`
	// Generation is the generation of the pod with the image, if it is older than that of the state.
	Generation int64 `json:"generation,omitempty"`
}

// generationOf returns the generation of the pod with the new image of a container.
func (s State) generationOf(container string) int64 {
	return cmp.Or(s.Containers[container].Generation, s.Generation)
}

// newest returns the generation of the pod with all new images.
func (s State) newest() (newest int64) {
	for name := range s.Containers {
		newest = max(newest, s.generationOf(name))
	}
	return newest
}

// Empty reports whether there is nothing to wait for.
func (s State) Empty() bool { return len(s.Containers) == 0 && len(s.Resized) == 0 }

// String describes what the update changes.
func (s State) String() string {
	c := Change{Images: map[string]string{}, Resources: map[string]corev1.ResourceRequirements{}}
	for name := range s.Containers {
		c.Images[name] = ""
	}
	for _, name := range s.Resized {
		c.Resources[name] = corev1.ResourceRequirements{}
	}
	return c.String()
}

// ResizeRestarts reports whether the resize of a state restarts a container of a pod, because its resizePolicy says so.
func (s State) ResizeRestarts(pod *corev1.Pod) bool {
	for _, name := range s.Resized {
		m, ok := find(&pod.Spec, name)
		if ok && slices.ContainsFunc(resizable(), func(r corev1.ResourceName) bool { return restartsFor(m.Container, r) }) {
			return true
		}
	}
	return false
}

// ParseState parses the value of the state annotation. It accepts only what this package writes, byte for byte: at most 16
// KiB, no unknown key, no duplicate key, nothing after the end.
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

// StateOf returns the state of a pod's update in place. It is empty if the annotation is missing or unreadable, or is about
// another revision or a generation that the pod never had. The error is not nil then if there is an annotation.
func StateOf(pod *corev1.Pod) (State, error) {
	value, ok := pod.Annotations[StateAnnotation]
	if !ok {
		return State{}, nil
	}
	s, err := ParseState(value)
	switch {
	case err != nil:
		return State{}, fmt.Errorf("annotation %s: %w", StateAnnotation, err)
	case s.Revision != pod.Labels[v1beta1.RevisionLabel]:
		return State{}, fmt.Errorf("annotation %s: not of this revision", StateAnnotation)
	case s.Generation > pod.Generation, s.newest() > pod.Generation:
		return State{}, fmt.Errorf("annotation %s: of a generation to come", StateAnnotation)
	}
	return s, nil
}

// next returns the state of a pod after a change to a revision is written: what the change brings, and what an earlier one
// has left undone.
func next(pod *corev1.Pod, c Change, revision string) State {
	earlier, _ := StateOf(pod) // an unreadable state counts for nothing
	s := State{Revision: revision, Generation: pod.Generation, Containers: map[string]Container{}}
	if !c.Restarted {
		s.Containers = unfinished(pod, earlier)
	}
	unobserved := changedUnseen(pod, earlier)
	for name, image := range c.Images {
		m, ok := find(&pod.Spec, name)
		if !ok || m.Image == image {
			continue // nothing changes for the kubelet
		}
		if pod.Generation > 0 { // API servers older than 1.33 do not count
			s.Generation = pod.Generation + 1
		}
		status := statusOf(pod, name)
		container := Container{ID: status.ContainerID}
		switch left, waiting := s.Containers[name]; {
		case waiting && left.ID == container.ID && left.Image != 0:
			container.Image = left.Image
		case waiting, unobserved:
		default:
			container.Image, container.Content = hashOf(m.Image), contentOf(&status)
		}
		container.Alike = shows(&status, image) && hashOf(image) != container.Image
		s.Containers[name] = container
	}
	s.Resized = resizing(pod, c, earlier)
	return s
}

// contentOf returns the hash of what a container runs; 0 if the runtime does not say.
func contentOf(status *corev1.ContainerStatus) uint64 {
	if status.ImageID == "" {
		return 0
	}
	return hashOf(status.ImageID)
}

// resizing returns the containers that a change resizes, or that an unfinished earlier one does.
func resizing(pod *corev1.Pod, c Change, earlier State) (names []string) {
	for _, m := range members(&pod.Spec) {
		_, changes := c.Resources[m.Name]
		if changes || !c.Resized && slices.Contains(earlier.Resized, m.Name) {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// unfinished returns the containers that an earlier update may still wait for.
func unfinished(pod *corev1.Pod, earlier State) map[string]Container {
	left := make(map[string]Container)
	for name, container := range earlier.Containers {
		m, ok := find(&pod.Spec, name)
		if !ok {
			continue
		}
		if _, how := restarted(pod, m, earlier, Sighting{}); how == none {
			// Only numbers are taken over from the annotation.
			container.Generation = earlier.generationOf(name)
			if container.ID != statusOf(pod, name).ContainerID {
				container.ID, container.Image = "", 0 // it has restarted already
			}
			left[name] = container
		}
	}
	return left
}

// changedUnseen reports whether another client has changed a pod, and its kubelet has not observed that yet.
func changedUnseen(pod *corev1.Pod, earlier State) bool {
	ours := earlier.Generation
	if len(earlier.Resized) > 0 {
		ours++
	}
	return pod.Generation > ours && pod.Status.ObservedGeneration > 0 && pod.Status.ObservedGeneration < pod.Generation
}

// hashOf returns a hash of an image.
func hashOf(image string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(image)) // a hash takes everything
	return h.Sum64()
}
