// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
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

// TestRefusedClaims has a broken pod, and lacks one at the update revision, whose claim the API server refused. A pod is not recreated there
// if its successor would need another claim.
func TestRefusedClaims(t *testing.T) {
	t.Parallel()
	own := attempt.Key{Verb: attempt.Creating, Object: "1"}
	deleted := "delete web-0 (recreate at v2)"
	held := "hold web-0: revision v2 needs claim data-web-0, and the API server refuses those of web-1: no more claims"
	for name, tt := range map[string]struct {
		config, state string
		key           attempt.Key
		refusal       snapshot.Refusal
		want          string
	}{
		"its own":               {"ordinal R=2 claims claimless v1>v2", "0:v1,", own, snapshot.Refusal{Message: "no more claims", OfClaim: true}, held},
		"all":                   {"ordinal R=2 claims claimless v1>v2", "0:v1,", attempt.AnyCreate(), snapshot.Refusal{Message: "no more claims", OfClaim: true}, held},
		"the pod":               {"ordinal R=2 claims claimless v1>v2", "0:v1,", own, snapshot.Refusal{Message: "no more pods"}, deleted},
		"not asked yet":         {"ordinal R=2 claims claimless v1>v2", "0:v1,", own, snapshot.Refusal{OfClaim: true}, deleted},
		"the claim is there":    {"ordinal R=2 claims v1>v2", "0:v1,$", own, snapshot.Refusal{Message: "no more claims", OfClaim: true}, deleted},
		"at another revision":   {"ordinal R=2 p=1 claims claimless v1>v2", "1:v1,", attempt.Key{Verb: attempt.Creating, Object: "0"}, snapshot.Refusal{Message: "no more claims", OfClaim: true}, "delete web-1 (recreate at v2)"},
		"no place waits for it": {"ordinal R=1 claims claimless v1>v2", "0:v1,", own, snapshot.Refusal{Message: "no more claims", OfClaim: true}, deleted},
	} {
		snap := snapshottest.Parse(tt.config, tt.state)
		snap.Refusals = map[attempt.Key]snapshot.Refusal{tt.key: tt.refusal}
		w := desired.Of(snap)
		p := update.Plan(snap, w, action.Plan{})
		if got := strings.TrimSpace(p.String()); got != tt.want {
			t.Errorf("%s: plan:\n%s\nwant:\n%s\nplaces %v", name, got, tt.want, w.Places)
		}
	}
}
