// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
)

func TestDifference(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"none":         {change: func(*corev1.Pod) {}},
		"an image":     {change: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:v0" }, want: "spec.containers[app].image: changed"},
		"a label":      {change: func(p *corev1.Pod) { p.Labels = nil }, want: "metadata.labels[app]: added"},
		"an injection": {change: func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{}} }, want: "spec.tolerations: removed"},
		"a spread constraint that names the hash of a Deployment": {
			change: func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MatchLabelKeys: []string{"pod-template-hash"}}}
			},
			want: "spec.topologySpreadConstraints: removed",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, pod := snapshottest.Parse("ordinal R=3 v1", "0:rs+"), snapshottest.Admitted("0")
			o.Update.Template = &corev1.PodTemplateSpec{}
			o.Update.Template.Labels = map[string]string{"app": "web"}
			o.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{}}
			o.Spec.VolumeClaimTemplates[0].Name = "data"
			o.Replicas[0].Pod = pod
			tt.change(pod)
			if got := o.Difference(&o.Replicas[0], o.Update, snapshottest.Admitted("preflight")); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
