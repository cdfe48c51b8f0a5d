// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// againSuffix marks a tag as another name for the content of the tag without it.
const againSuffix = "-again"

// image is a reference to an image, taken apart.
type image struct{ reference, repository, tag, digest string }

// parseImage splits a reference into repository, tag and digest. A colon left of the last slash is a port.
func parseImage(reference string) image {
	name, digest, _ := strings.Cut(reference, "@")
	repository, tag := name, ""
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		repository, tag = name[:colon], name[colon+1:]
	}
	return image{reference: reference, repository: repository, tag: tag, digest: digest}
}

// has says whether the tag asks for a behavior.
func (i image) has(word string) bool { return strings.Contains(i.tag, word) }

func (i image) isMissing() bool { return i.has("missing") }
func (i image) isBroken() bool  { return i.has("broken") }
func (i image) isSlow() bool    { return i.has("slow") }
func (i image) exits() bool     { return i.has("crash") || i.has("exit") }

// exitCode is the code with which a container of an image that exits does so.
func (i image) exitCode() int32 {
	if i.has("crash") {
		return 1
	}
	return 0
}

// reported is the name under which the runtime reports the image: of several tags of one content, always the same.
func (i image) reported() string {
	if i.digest != "" {
		return i.reference
	}
	return strings.TrimSuffix(i.reference, againSuffix)
}

// id is the image's content in the form that real nodes report: repository and digest.
func (i image) id() string {
	digest := i.digest
	if digest == "" {
		sum := sha256.Sum256([]byte(i.reported()))
		digest = "sha256:" + hex.EncodeToString(sum[:])
	}
	return i.repository + "@" + digest
}

// containerIDScheme precedes the runtime's own part of a container ID.
const containerIDScheme = "containerd://"

// placeDigits is how many of a container ID's 64 digits tell its pod, name and incarnation.
const placeDigits = 16

// containerID names one incarnation of a container. The image that it was started from can be read back from it,
// by startedFrom: a real kubelet keeps that in the runtime, and the model has nothing but the pod.
func containerID(pod *corev1.Pod, name string, restarts int32, reference string) string {
	place := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", pod.UID, name, restarts))
	origin := sha256.Sum256([]byte(reference))
	digits := hex.EncodeToString(place[:])[:placeDigits] + hex.EncodeToString(origin[:])
	return containerIDScheme + digits[:sha256.Size*2]
}

// startedFrom says whether the container that a status tells of was started from this very reference. A container
// that the model did not start is judged by the image it reports.
func startedFrom(pod *corev1.Pod, status *corev1.ContainerStatus, reference string) bool {
	own := containerID(pod, status.Name, status.RestartCount, reference)
	if strings.HasPrefix(status.ContainerID, own[:len(containerIDScheme)+placeDigits]) {
		return status.ContainerID == own
	}
	return status.Image == parseImage(reference).reported()
}
