// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/update"
)

// TestKnownObstacles holds pods whose successors could not use their claims. Others are moved.
func TestKnownObstacles(t *testing.T) {
	t.Parallel()
	other := metav1.OwnerReference{Kind: "Database", Name: "db", UID: "uid-db", Controller: new(true)}
	for name, edit := range map[string]struct {
		change func(claims []*corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim
		want   string
	}{
		"another controller owns the claim": {func(claims []*corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim {
			claims[0].OwnerReferences = []metav1.OwnerReference{other}
			return claims
		}, "hold web-1: claim data-web-1 belongs to Database db; delete the claim, or rename the claim template"},
		"the claim that the pod mounts is not the set's": {func([]*corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim {
			return nil
		}, "hold web-1: it mounts claim data-web-1, which has the label of another set; give it the label apps.rollset.dev/set=web, or delete the pod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse("ordinal claims R=2 mu=2 v1>v2", "0:v1+$ 1:v1+$")
			r := &snap.Replicas[1]
			source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-1"}
			r.Pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}}}
			r.Claims = edit.change(r.Claims)
			p := update.Plan(snap, desired.Of(snap), action.Plan{})
			if got, want := strings.TrimSpace(p.String()), "delete web-0 (recreate at v2)\n"+edit.want; got != want {
				t.Errorf("plan:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// TestDyingClaimIsNoObstacle moves a pod whose claim is deleted with it, although another controller owns the claim.
func TestDyingClaimIsNoObstacle(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordinal claims R=1 mu=1 v1>v2", "0:v1+$")
	claim := snap.Replicas[0].Claims[0]
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Database", Name: "db", UID: "uid-db", Controller: new(true)}}
	claim.DeletionTimestamp = new(metav1.NewTime(snap.Now))
	p := update.Plan(snap, desired.Of(snap), action.Plan{})
	if got, want := p.String(), "delete web-0 (recreate at v2)\n"; got != want {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
}
