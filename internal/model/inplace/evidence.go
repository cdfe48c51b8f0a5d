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
	// passing is a proof that is there now: a name that a node gives to an image, or something that was seen.
	passing
	// lasting is a proof that whoever looks at the pod later finds as well.
	lasting
)

// Sighting is which containers a pod had when its kubelet was first seen to have reported the generation of an update.
// A pod's worker does one thing after the other: a container that starts later runs the new image.
type Sighting struct {
	generation int64
	ids        map[string]string
}

// See returns the sighting after one more look at the pod.
func (s Sighting) See(pod *corev1.Pod) Sighting {
	state, _ := StateOf(pod) // one that cannot be read counts for nothing
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

// precedes reports whether another container of a name was there when the kubelet had seen a generation.
func (s Sighting) precedes(status *corev1.ContainerStatus, generation int64) bool {
	id, seen := s.ids[status.Name]
	return seen && generation > 0 && s.generation >= generation && id != status.ContainerID
}

// firstRestart returns what is waited for until the first container, by name, that does not run its new image does, "" if
// all do, and whether a proof of that is a passing one.
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

// restarted returns how certain it is that a container runs its new image, and if it is not, what is waited for.
//
// What the kubelet reports is this: at once, that it has seen the new generation, with everything else as before; when
// the old container has ended and the new one runs, seconds or minutes later and in one write, the new containerID,
// imageID and image. So the generation alone proves nothing. Another containerID proves nothing either: the container
// may have crashed, and have been started from the old image, before the kubelet saw the change.
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

// shows reports whether a status shows that a container runs an image of a spec: by its name, or by the digest that the
// spec pins. Runtimes report names in full, docker.io/library/redis:7 for redis:7.
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

// maxName is how much of the name of an image a message has.
const maxName = 200

// short is the name of an image for a message.
func short(image string) string {
	if len(image) <= maxName {
		return image
	}
	return strings.ToValidUTF8(image[:maxName], "") + "…"
}
