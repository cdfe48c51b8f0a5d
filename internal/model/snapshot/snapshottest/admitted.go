// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshottest

import corev1 "k8s.io/api/core/v1"

// Admitted returns a pod of set web as the API server returns it, made from a template with one claim.
func Admitted(id string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name = "web-" + id
	pod.Labels = map[string]string{"app": "web"}
	pod.Spec = corev1.PodSpec{
		Hostname:      pod.Name,
		RestartPolicy: corev1.RestartPolicyAlways,
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-" + id}}},
			{Name: "kube-api-access-" + id, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
		},
		Containers: []corev1.Container{{
			Name: "app", Image: "app:v1",
			VolumeMounts: []corev1.VolumeMount{{Name: "data"}, {Name: "kube-api-access-" + id}},
		}},
	}
	return pod
}
