// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package claims_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

func TestObstacle(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   string
	}{
		"its own": {change: func(*corev1.PersistentVolumeClaim) {}},
		"without a label": {
			change: func(c *corev1.PersistentVolumeClaim) { c.Labels = nil },
		},
		"of another set": {
			change: func(c *corev1.PersistentVolumeClaim) { c.Labels[v1beta1.SetLabel] = "other" },
			want:   "claim data-web-0 belongs to the set other; rename the claim template, or, if the data is this set's, give the claim the label apps.rollset.dev/set=web",
		},
		"of a StatefulSet whose name and template spell the same": {
			change: func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"app": "other"} },
			want: "claim data-web-0 has labels that the selector does not match, so it is another workload's; " +
				"rename the claim template, or give the claim the label apps.rollset.dev/set=web",
		},
		"with labels that do not say whose it is": {
			change: func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"team": "a"} },
			want: "claim data-web-0 has labels that the selector does not match, so it is another workload's; " +
				"rename the claim template, or give the claim the label apps.rollset.dev/set=web",
		},
		"excluded by an expression": {
			change: func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"app": "web", "tier": "cache"} },
			want: "claim data-web-0 has labels that the selector does not match, so it is another workload's; " +
				"rename the claim template, or give the claim the label apps.rollset.dev/set=web",
		},
		"of a StatefulSet with the same selector": {
			change: func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"app": "web", "tier": "db"} },
		},
		"being deleted": {
			change: func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
			want:   "claim data-web-0 is being deleted and still in use",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := claim("0", "1Gi")
			tt.change(c)
			snap := observe("ordinal R=1 v1", "0:-", "1Gi", nil)
			snap.Spec.Selector = &metav1.LabelSelector{
				MatchLabels:      map[string]string{"app": "web"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"db"}}},
			}
			if diff := cmp.Diff(tt.want, snap.ClaimObstacle(&snap.Replicas[0], c)); diff != "" {
				t.Errorf("obstacle (-want +got):\n%s", diff)
			}
		})
	}
}

// TestObstacleInUse has a claim with the label of another set that a pod uses. A user has changed the label, unless the claim has a name
// that the other set would give.
func TestObstacleInUse(t *testing.T) {
	t.Parallel()
	const belongs = "claim data-a-web-0 belongs to the set a-web; rename the claim template, or, if the data is this set's, give the claim the label apps.rollset.dev/set=web"
	for other, want := range map[string]string{"a-web": belongs, "elsewhere": ""} {
		snap := observe("ordinal R=1 v1", "0:v1+", "1Gi", nil)
		c := claim("0", "1Gi")
		c.Name, c.Labels[v1beta1.SetLabel] = "data-a-web-0", other
		mount(snap.Replicas[0].Pod, c.Name)
		if diff := cmp.Diff(want, snap.ClaimObstacle(&snap.Replicas[0], c)); diff != "" {
			t.Errorf("%s: obstacle (-want +got):\n%s", other, diff)
		}
	}
}
