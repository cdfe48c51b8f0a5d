// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// tokenVolume is the prefix of the volume that holds a pod's service account token. The API server appends a random suffix.
const tokenVolume = "kube-api-access-"

// PlainToken removes the random suffix from the name of a pod's token volume, so that specs of two pods compare equal.
func PlainToken(spec *corev1.PodSpec) {
	for i := range spec.Volumes {
		plainVolume(&spec.Volumes[i].Name)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			mounts := containers[i].VolumeMounts
			for j := range mounts {
				plainVolume(&mounts[j].Name)
			}
		}
	}
}

func plainVolume(name *string) {
	if len(*name) > len(tokenVolume) && strings.HasPrefix(*name, tokenVolume) { // a shared spec is already plain, and must not be written to
		*name = tokenVolume
	}
}
