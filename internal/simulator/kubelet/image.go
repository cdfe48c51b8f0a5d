// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

const (
	// againSuffix marks a tag as another name for the content of the tag without it.
	againSuffix = "-again"
	// mirrorHost is the registry under whose name the runtime reports images that it pulled from a mirror.
	mirrorHost = "mirror.example.com"
)

// image is a reference to an image, with its tag and digest.
type image struct{ reference, tag, digest string }

// parseImage finds tag and digest of a reference. A colon left of the last slash is a port.
func parseImage(ref string) image {
	name, digest, _ := strings.Cut(ref, "@")
	tag := ""
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		tag = name[colon+1:]
	}
	return image{reference: ref, tag: tag, digest: digest}
}

// has reports whether the tag asks for a behavior.
func (i image) has(word string) bool { return strings.Contains(i.tag, word) }

func (i image) isMissing() bool { return i.has("missing") }
func (i image) isBroken() bool  { return i.has("broken") }
func (i image) isSlow() bool    { return i.has("slow") }
func (i image) exits() bool     { return i.has("crash") || i.has("exit") }

// exitCode returns the code with which a container of an image that exits does so.
func (i image) exitCode() int32 {
	if i.has("crash") {
		return 1
	}
	return 0
}

// isInvalid reports whether the reference is no name of an image.
func (i image) isInvalid() bool {
	_, err := reference.ParseDockerRef(i.reference)
	return err != nil
}

// reported returns the name under which the runtime reports the image: of several tags of one content always the same, and
// in full, as docker.io/library/app:v1 for app:v1. An image from a mirror has the mirror's host. One that has no name
// there goes by its id.
func (i image) reported() string {
	named, err := reference.ParseDockerRef(i.reference)
	switch {
	case err != nil:
		return i.reference
	case i.has("bare"):
		return i.digested()
	}
	full := strings.TrimSuffix(named.String(), againSuffix)
	if i.has("mirror") {
		return mirrorHost + strings.TrimPrefix(full, reference.Domain(named))
	}
	return full
}

// id returns the image's content in the form that real nodes report: repository and digest, or the digest alone.
func (i image) id() string {
	named, err := reference.ParseDockerRef(i.reference)
	switch {
	case err != nil, i.has("bare"):
		return i.digested()
	case i.has("mirror"):
		return mirrorHost + "/" + reference.Path(named) + "@" + i.digested()
	default:
		return named.Name() + "@" + i.digested()
	}
}

// digested returns the digest of the image's content.
func (i image) digested() string {
	if i.digest != "" {
		return i.digest
	}
	name := i.reference
	if named, err := reference.ParseDockerRef(name); err == nil {
		name = named.String() // the same content, however the name is written
	}
	sum := sha256.Sum256([]byte(strings.TrimSuffix(name, againSuffix)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// containerIDScheme precedes the runtime's own part of a container ID.
const containerIDScheme = "containerd://"

// placeDigits is the number of digits of a container ID that encode its pod, name and incarnation. An ID has 64 digits.
const placeDigits = 16

// containerID names one incarnation of a container. The image that it was started from can be read back from it,
// by StartedFrom: a real kubelet keeps that in the runtime, and the model has nothing but the pod.
func containerID(pod *corev1.Pod, name string, restarts int32, ref string) string {
	place := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", pod.UID, name, restarts))
	origin := sha256.Sum256([]byte(ref))
	digits := hex.EncodeToString(place[:])[:placeDigits] + hex.EncodeToString(origin[:])
	return containerIDScheme + digits[:sha256.Size*2]
}

// StartedFrom reports whether the container of a status was started from exactly this reference. A container that the
// model did not start is judged by the image it reports.
func StartedFrom(pod *corev1.Pod, status *corev1.ContainerStatus, ref string) bool {
	own := containerID(pod, status.Name, status.RestartCount, ref)
	if strings.HasPrefix(status.ContainerID, own[:len(containerIDScheme)+placeDigits]) {
		return status.ContainerID == own
	}
	return status.Image == parseImage(ref).reported()
}

// Runs reports whether the container of a status runs the image of a reference, or the same content under another name.
func Runs(pod *corev1.Pod, status *corev1.ContainerStatus, ref string) bool {
	return StartedFrom(pod, status, ref) || status.ImageID == parseImage(ref).id()
}
