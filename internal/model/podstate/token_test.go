// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/podstate"
)

// TestWithoutAdmission takes from a pod what admission plug-ins added to it, and nothing that was sent.
func TestWithoutAdmission(t *testing.T) {
	t.Parallel()
	own := corev1.Toleration{Key: "example.com/gpu", Operator: corev1.TolerationOpExists}
	lost := corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))}
	plain := func() *corev1.PodSpec {
		mounts := []corev1.VolumeMount{{Name: "data"}}
		return &corev1.PodSpec{
			Volumes:        []corev1.Volume{{Name: "data"}},
			InitContainers: []corev1.Container{{VolumeMounts: mounts}},
			Containers:     []corev1.Container{{VolumeMounts: mounts}},
			Tolerations:    []corev1.Toleration{own},
		}
	}
	full := func() *corev1.PodSpec {
		spec := plain()
		spec.Tolerations = []corev1.Toleration{own, lost}
		spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy = "high", new(int32(10)), new(corev1.PreemptNever)
		spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: {}}
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
		return spec
	}
	for name, sent := range map[string]*corev1.PodSpec{"all of it was added": plain(), "only the token was added": full()} {
		spec := full()
		token := corev1.Volume{Name: "kube-api-access-x2x4z"}
		spec.Volumes = append(spec.Volumes, token)
		for _, c := range []*corev1.Container{&spec.InitContainers[0], &spec.Containers[0]} {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: token.Name})
		}
		podstate.WithoutAdmission(spec, sent)
		if diff := cmp.Diff(sent, spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPlainToken renames the volumes of tokens, and no others.
func TestPlainToken(t *testing.T) {
	t.Parallel()
	spec := &corev1.PodSpec{
		Volumes:    []corev1.Volume{{Name: "kube-api-access-x2x4z"}, {Name: "a-volume-with-a-long-name"}},
		Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-x2x4z"}, {Name: "a-volume-with-a-long-name"}}}},
	}
	podstate.PlainToken(spec)
	for i, want := range []string{"kube-api-access-", "a-volume-with-a-long-name"} {
		if spec.Volumes[i].Name != want || spec.Containers[0].VolumeMounts[i].Name != want {
			t.Errorf("volume %d is %s, mounted as %s, want %s", i, spec.Volumes[i].Name, spec.Containers[0].VolumeMounts[i].Name, want)
		}
	}
}
