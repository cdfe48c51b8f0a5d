// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"slices"
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

// WithoutAdmission removes from the spec of a pod what the admission plug-ins of the API server added, given the spec that was sent:
// the token, the tolerations for nodes that do not answer, and the priority, the overhead and the pull secrets that others say.
func WithoutAdmission(spec, sent *corev1.PodSpec) {
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, tokenVolume) })
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, tokenVolume) })
		}
	}
	spec.Tolerations = slices.DeleteFunc(spec.Tolerations, func(t corev1.Toleration) bool {
		added := t.Effect == corev1.TaintEffectNoExecute && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
		return added && !slices.ContainsFunc(sent.Tolerations, func(own corev1.Toleration) bool { return own.MatchToleration(&t) })
	})
	if sent.PriorityClassName == "" {
		spec.PriorityClassName = ""
	}
	if sent.Priority == nil {
		spec.Priority = nil
	}
	if sent.PreemptionPolicy == nil {
		spec.PreemptionPolicy = nil
	}
	if sent.Overhead == nil {
		spec.Overhead = nil
	}
	if len(sent.ImagePullSecrets) == 0 {
		spec.ImagePullSecrets = nil
	}
}
