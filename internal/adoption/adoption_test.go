// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package adoption_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/adoption"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
)

func observe(state string, pods ...*corev1.Pod) *snapshot.Set {
	snap := snapshottest.Parse("ordinal R=3 v1", state)
	snap.Update.Template = &corev1.PodTemplateSpec{}
	snap.Update.Template.Labels = map[string]string{"app": "web"}
	snap.Known = map[string]snapshot.Revision{"v1": snap.Update}
	snap.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{}}
	snap.Spec.VolumeClaimTemplates[0].Name = "data"
	for i, pod := range pods {
		pod.Spec.NodeName = "node"
		snap.Replicas[i].Pod = pod
	}
	return snap
}

func TestPlan(t *testing.T) {
	t.Parallel()
	accepted := map[string]snapshot.Preflight{"v1": {Pod: snapshottest.Admitted("preflight")}}
	change := func(id string, f func(*corev1.Pod)) *corev1.Pod {
		pod := snapshottest.Admitted(id)
		f(pod)
		return pod
	}
	tests := map[string]struct {
		state      string
		pods       []*corev1.Pod
		preflights map[string]snapshot.Preflight
		want       string
	}{
		"pods of known revisions keep their label": {
			state: "0:v1+ 1:v1+", pods: []*corev1.Pod{snapshottest.Admitted("0"), snapshottest.Admitted("1")},
		},
		"the API server is asked what the template gives": {
			state: "0:sts+ 1:sts+", pods: []*corev1.Pod{snapshottest.Admitted("0"), snapshottest.Admitted("1")},
			want: "preflight v1\n",
		},
		"pods that equal it are taken for its pods": {
			state: "0:sts+ 1:v1+ 2:sts.", pods: []*corev1.Pod{snapshottest.Admitted("0"), snapshottest.Admitted("1"), snapshottest.Admitted("2")}, preflights: accepted,
			want: "relabel web-0 to v1 (it is what the template gives)\nrelabel web-2 to v1 (it is what the template gives)\n",
		},
		"more labels do not matter": {
			state: "0:rs+", pods: []*corev1.Pod{change("0", func(p *corev1.Pod) { p.Labels["pod-template-hash"] = "x" })}, preflights: accepted,
			want: "relabel web-0 to v1 (it is what the template gives)\n",
		},
		"the missing readiness gate does not matter": {
			state: "0:rs+", pods: []*corev1.Pod{snapshottest.Admitted("0")},
			preflights: map[string]snapshot.Preflight{"v1": {Pod: change("preflight", func(p *corev1.Pod) {
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.InPlaceUpdateReady}}
			})}},
			want: "relabel web-0 to v1 (it is what the template gives)\n",
		},
		"CloneSet's readiness gates do not matter": {
			state: "0:cs+", pods: []*corev1.Pod{change("0", func(p *corev1.Pod) {
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}, {ConditionType: "KruisePodReady"}}
			})}, preflights: accepted,
			want: "relabel web-0 to v1 (it is what the template gives)\n",
		},
		"a readiness gate of another controller does": {
			state: "0:rs+", pods: []*corev1.Pod{change("0", func(p *corev1.Pod) {
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/Registered"}}
			})}, preflights: accepted,
		},
		"another image does": {
			state: "0:rs+", pods: []*corev1.Pod{change("0", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "app:v0" })}, preflights: accepted,
		},
		"a missing label does": {
			state: "0:rs+", pods: []*corev1.Pod{change("0", func(p *corev1.Pod) { p.Labels = nil })}, preflights: accepted,
		},
		"another pod's claim does": {
			state: "0:rs+", pods: []*corev1.Pod{change("0", func(p *corev1.Pod) {
				p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "data-web-1"
			})}, preflights: accepted,
		},
		"an answer that a full quota cut short is not the last word": {
			state: "0:rs+", pods: []*corev1.Pod{snapshottest.Admitted("0")},
			preflights: map[string]snapshot.Preflight{"v1": {}},
			want:       "preflight v1\n",
		},
		"but it is not asked for at once": {
			state: "0:rs+", pods: []*corev1.Pod{snapshottest.Admitted("0")},
			preflights: map[string]snapshot.Preflight{"v1": {Retry: time.Second}},
		},
		"what the API server refuses equals nothing for a while": {
			state: "0:rs+", pods: []*corev1.Pod{snapshottest.Admitted("0")},
			preflights: map[string]snapshot.Preflight{"v1": {Refusal: "no", Retry: time.Minute}},
		},
		"after that it is asked again": {
			state: "0:rs+", pods: []*corev1.Pod{snapshottest.Admitted("0")},
			preflights: map[string]snapshot.Preflight{"v1": {Refusal: "no"}},
			want:       "preflight v1\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe(tt.state, tt.pods...)
			snap.Preflights = tt.preflights
			p := adoption.Recognize(snap)
			if diff := cmp.Diff(tt.want, p.String()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
