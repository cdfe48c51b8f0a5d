// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

func TestBuildRandom(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	template := w.snap.Update.Template
	template.Annotations = map[string]string{"note": "kept"}
	template.Finalizers = []string{"example.com/kept"}
	template.Spec.NodeName = "kept"
	before := template.DeepCopy()
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-x7k2p", Namespace: "default",
			Labels: map[string]string{
				"app": "web", v1beta1.RevisionLabel: revision, v1beta1.InstanceIDLabel: "x7k2p",
			},
			Annotations: map[string]string{"note": "kept"},
			Finalizers:  []string{"example.com/kept"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.rollset.dev/v1beta1", Kind: "RollSet", Name: "web", UID: "set",
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{NodeName: "kept"},
	}
	pod := Build(w.set, w.snap.Update, "x7k2p")
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	pod.Labels["app"], pod.Annotations["note"], pod.Finalizers[0] = "changed", "changed", "changed"
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("the pod shares memory with the template (-before +after):\n%s", diff)
	}
}

func TestBuildOrdinal(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.OrdinalIdentity)
	w.set.Spec.ServiceName = "peers"
	w.set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{
		{ObjectMeta: metav1.ObjectMeta{Name: "data"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "logs"}},
	}
	w.snap.Update.Claims = snapshot.RevisionOf(revision, &w.set.Spec).Claims
	w.snap.Update.Template.Spec.Volumes = []corev1.Volume{{Name: "config"}, {Name: "data"}}
	pod := Build(w.set, w.snap.Update, "7")

	labels := map[string]string{
		"app": "web", v1beta1.RevisionLabel: revision, v1beta1.PodIndexLabel: "7", v1beta1.PodNameLabel: "web-7",
	}
	if diff := cmp.Diff(labels, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	claim := func(template string) corev1.Volume {
		return corev1.Volume{Name: template, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: template + "-web-7"},
		}}
	}
	spec := corev1.PodSpec{
		Hostname: "web-7", Subdomain: "peers",
		Volumes: []corev1.Volume{claim("data"), claim("logs"), {Name: "config"}},
	}
	if diff := cmp.Diff(spec, pod.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}
