// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/snapshot"
)

// TestChangeOfClaims compares revisions with equal templates: the volumes of a running pod are immutable.
func TestChangeOfClaims(t *testing.T) {
	t.Parallel()
	revision := func(claims ...string) snapshot.Revision {
		r := snapshot.Revision{Template: &corev1.PodTemplateSpec{}}
		for _, name := range claims {
			r.Claims = append(r.Claims, snapshot.ClaimTemplate{Name: name})
		}
		return r
	}
	snap := snapshot.Revisions{Known: map[string]snapshot.Revision{
		"none": revision(), "data": revision("data"), "both": revision("log", "data"), "turned": revision("data", "log"),
	}}
	tests := map[[2]string]string{
		{"data", "data"}:   "",
		{"both", "turned"}: "",
		{"none", "data"}:   "volumeClaimTemplates: data is added",
		{"both", "data"}:   "volumeClaimTemplates: log is removed",
		{"lost", "data"}:   "the template that the pod was made from is lost",
	}
	for transition, want := range tests {
		if _, got := snap.Change(transition[0], transition[1]); got != want {
			t.Errorf("from %s to %s: cannot = %q, want %q", transition[0], transition[1], got, want)
		}
	}
}
