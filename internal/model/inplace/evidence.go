// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// proof is how certain it is that a container runs the image of its spec.
type proof int

const (
	none proof = iota
	// passing is a proof that exists now but may not last: an image name that a node reports, or an observation of this
	// manager.
	passing
	// lasting is a proof that is still there for anyone who reads the pod later.
	lasting
)

// Sighting records which containers a pod had when its kubelet was first seen to have observed the generation of an update.
// A kubelet handles one pod sequentially, so a container that starts later runs the new image.
type Sighting struct {
	generation int64
	ids        map[string]string
}

// See returns the sighting after another look at the pod.
func (s Sighting) See(pod *corev1.Pod) Sighting {
	state, _ := StateOf(pod) // an unreadable state counts for nothing
	if len(state.Containers) == 0 {
		return Sighting{}
	}
	newest := state.newest()
	if s.generation >= newest || pod.Status.ObservedGeneration < newest {
		return s
	}
	s = Sighting{generation: pod.Status.ObservedGeneration, ids: make(map[string]string, len(state.Containers))}
	for name := range state.Containers {
		if status := statusOf(pod, name); status.Name != "" {
			s.ids[name] = status.ContainerID
		}
	}
	return s
}

// Empty reports whether nothing was seen.
func (s Sighting) Empty() bool { return s.generation == 0 }

// precedes reports whether a status shows another container than the one that existed when the kubelet had seen a
// generation.
func (s Sighting) precedes(status *corev1.ContainerStatus, generation int64) bool {
	id, seen := s.ids[status.Name]
	return seen && generation > 0 && s.generation >= generation && id != status.ContainerID
}

// firstRestart returns what must happen until the first container, by name, runs its new image; empty if all do. isPassing
// reports whether a proof of that may not last.
func firstRestart(pod *corev1.Pod, s State, seen Sighting) (waiting string, isPassing bool) {
	for _, name := range slices.Sorted(maps.Keys(s.Containers)) {
		m, ok := find(&pod.Spec, name)
		if !ok {
			continue
		}
		waiting, how := restarted(pod, m, s, seen)
		if how == none {
			return waiting, false
		}
		isPassing = isPassing || how == passing
	}
	return "", isPassing
}

// restarted returns how certain it is that a container runs its new image. If it is not certain, waiting says what is missing.
//
// A kubelet first reports that it has observed the new generation, with everything else unchanged. Seconds or minutes later,
// when the old container has ended and the new one runs, it reports the new containerID, imageID and image in one write. So
// the generation alone proves nothing. Another containerID proves nothing either: the container may have crashed and
// restarted from the old image before the kubelet saw the change.
func restarted(pod *corev1.Pod, m member, s State, seen Sighting) (waiting string, how proof) {
	before, generation, status := s.Containers[m.Name], s.generationOf(m.Name), statusOf(pod, m.Name)
	if generation > 0 && GateOf(pod).Done >= generation {
		return "", lasting
	}
	if unobserved := unseen(pod, generation); unobserved != "" {
		return fmt.Sprintf("container %s: %s", m.Name, unobserved), none
	}
	switch {
	case status.ContainerID == "":
		return fmt.Sprintf("container %s has not started", m.Name), none
	case status.ContainerID == before.ID && hashOf(m.Image) == before.Image:
		return "", passing // nothing has to restart
	case status.ContainerID == before.ID:
		return fmt.Sprintf("container %s has not restarted with %s yet", m.Name, short(m.Image)), none
	case before.Content != 0 && status.ImageID != "" && hashOf(status.ImageID) != before.Content:
		return "", lasting
	case !before.Alike && status.State.Running != nil && shows(&status, m.Image), seen.precedes(&status, generation):
		return "", passing
	default:
		return fmt.Sprintf("container %s has restarted, but not provably with %s: the node reports image %q, imageID %q",
			m.Name, short(m.Image), short(status.Image), short(status.ImageID)), none
	}
}

// shows reports whether a status shows that a container runs an image of a spec, by its name or by the digest that the spec
// pins. Runtimes report full names, such as docker.io/library/redis:7 for redis:7.
func shows(status *corev1.ContainerStatus, image string) bool {
	named, err := reference.ParseDockerRef(image)
	if err != nil {
		return false // no runtime has started it
	}
	if pinned, ok := named.(reference.Canonical); ok {
		return strings.HasSuffix(status.ImageID, pinned.Digest().String())
	}
	reported, err := reference.ParseDockerRef(status.Image)
	return err == nil && reported.String() == named.String()
}

// maxName is the maximum length of an image's name in a message.
const maxName = 200

// short returns the name of an image for a message.
func short(image string) string {
	if len(image) <= maxName {
		return image
	}
	return strings.ToValidUTF8(image[:maxName], "") + "…"
}
