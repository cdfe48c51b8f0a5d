// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
)

func TestDifference(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"none":                 {change: func(*corev1.Pod) {}},
		"an image":             {change: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:v0" }, want: "spec.containers[app].image: changed"},
		"a label":              {change: func(p *corev1.Pod) { p.Labels = nil }, want: "metadata.labels[app]: added"},
		"an injection":         {change: func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{}} }, want: "spec.tolerations: removed"},
		"the order of volumes": {change: func(p *corev1.Pod) { slices.Reverse(p.Spec.Volumes) }},
		"the gate of another controller": {change: func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "KruisePodReady"}}
		}},
		"a spread constraint that names the hash of a Deployment": {
			change: func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints[0].MatchLabelKeys = []string{"pod-template-hash"}
			},
			want: "spec.topologySpreadConstraints: changed",
		},
		"another selector of a constraint": {
			change: func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels = nil },
			want:   "spec.topologySpreadConstraints: changed",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap, pod := snapshottest.Parse("ordinal R=3 v1", "0:rs+"), snapshottest.Admitted("0")
			snap.Update.Template = &corev1.PodTemplateSpec{}
			snap.Update.Template.Labels = map[string]string{"app": "web"}
			snap.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{}}
			snap.Spec.VolumeClaimTemplates[0].Name = "data"
			snap.Replicas[0].Pod = pod
			reference := snapshottest.Admitted("preflight")
			spread(pod, "web-old")
			spread(reference, "web-new")
			tt.change(pod)
			if got := snap.Difference(&snap.Replicas[0], snap.Update, reference); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestDifferenceAsWritten compares a pod whose volumes stand in another order than those of the template, and
// with a claim in place of one of them.
func TestDifferenceAsWritten(t *testing.T) {
	t.Parallel()
	volumes := []corev1.Volume{{Name: "b"}, {Name: "data"}, {Name: "a"}}
	snap := snapshottest.Parse("ordinal R=1 claims v1", "0:v1+$")
	snap.Update.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: volumes}}
	snap.Replicas[0].Pod = &corev1.Pod{Spec: corev1.PodSpec{Volumes: slices.Clone(volumes)}}
	snap.Replicas[0].Pod.Spec.Volumes[1].PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-0"}
	for range 2 {
		if got := snap.DifferenceAsWritten(&snap.Replicas[0], snap.Update); got != "" {
			t.Errorf("the pod differs in %s", got)
		}
		slices.Reverse(snap.Replicas[0].Pod.Spec.Volumes)
	}
}

// spread gives a pod selectors with the hash of its revision, as the API server writes them for matchLabelKeys.
func spread(pod *corev1.Pod, revision string) {
	keys := []string{"controller-revision-hash"}
	selector := func() *metav1.LabelSelector {
		return &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: keys[0], Operator: metav1.LabelSelectorOpIn, Values: []string{revision}}},
		}
	}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MatchLabelKeys: keys, LabelSelector: selector()}}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{{MatchLabelKeys: keys, LabelSelector: selector()}},
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{MismatchLabelKeys: keys, LabelSelector: selector()}}},
	}}
}
