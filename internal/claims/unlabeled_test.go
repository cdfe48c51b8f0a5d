// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package claims_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/model/snapshot"
)

// TestUnlabeled checks claims that a StatefulSet leaves behind, without the label of a set.
func TestUnlabeled(t *testing.T) {
	t.Parallel()
	unlabeled := func(id string) *corev1.PersistentVolumeClaim {
		c := claim(id, "1Gi")
		c.Labels = nil
		return c
	}
	tests := map[string]struct {
		state, size string
		mounted     bool
		want        string
	}{
		"one that a pod uses becomes the set's": {
			state: "0:v1+", size: "1Gi", mounted: true,
			want: "own claim data-web-0 by RollSet web (a pod of the set uses it)",
		},
		"also one that its pod uses to the end": {
			state: "0:v1x", size: "1Gi", mounted: true,
			want: "own claim data-web-0 by RollSet web (a pod of the set uses it)",
		},
		"before that it does not grow": {
			state: "0:v1+", size: "2Gi", mounted: true,
			want: "own claim data-web-0 by RollSet web (a pod of the set uses it)",
		},
		"one that a pod does not use is left alone": {state: "0:v1+", size: "1Gi"},
		"one without a pod is left alone":           {state: "0:-", size: "1Gi"},
		"the pod takes its claim with it when it is scaled away": {
			state: "0:v1+ 1:v1+", size: "1Gi", mounted: true,
			want: "own claim data-web-0 by RollSet web (a pod of the set uses it)\nown claim data-web-1 by Pod web-1 (a pod of the set uses it)",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe("ordinal R=1 v1", tt.state, tt.size, map[string]*corev1.PersistentVolumeClaim{"0": unlabeled("0"), "1": unlabeled("1")})
			snap.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: remove, WhenScaled: remove}
			for i := range snap.Replicas {
				if r := &snap.Replicas[i]; tt.mounted {
					mount(r.Pod, "data-web-"+r.ID)
				}
			}
			if diff := cmp.Diff(tt.want, plan(snap)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnbound(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		class string
		phase corev1.PersistentVolumeClaimPhase
		want  string
	}{
		"a bound claim is not in the way":          {"fast", corev1.ClaimBound, ""},
		"one whose class binds at once is":         {"fast", corev1.ClaimPending, "claim data-web-0 is not bound"},
		"one whose class waits for the pod is not": {"late", corev1.ClaimPending, ""},
		"one whose class does not exist is":        {"none", corev1.ClaimPending, "claim data-web-0 is not bound: its storage class none does not exist"},
		"one without a class is":                   {"", corev1.ClaimPending, "claim data-web-0 is not bound, and it has no storage class"},
		"one that has lost its volume is":          {"fast", corev1.ClaimLost, "claim data-web-0 is not bound"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := claim("0", "1Gi")
			c.Status.Phase, c.Spec.StorageClassName = tt.phase, &tt.class
			snap := observe("ordinal R=1 v1", "0:v1.", "1Gi", map[string]*corev1.PersistentVolumeClaim{"0": c})
			snap.Classes = map[string]snapshot.Class{"fast": {Immediate: true}, "late": {}}
			mount(snap.Replicas[0].Pod, c.Name)
			if got := claims.Unbound(snap, &snap.Replicas[0]); got != tt.want {
				t.Errorf("Unbound = %q, want %q", got, tt.want)
			}
		})
	}
}
