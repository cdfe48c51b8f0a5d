// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "testing"

func TestManagementPolicy(t *testing.T) {
	tests := map[string]struct {
		identity PodIdentity
		policy   PodManagementPolicy
		want     PodManagementPolicy
	}{
		"Random by default":  {RandomIdentity, "", ParallelPodManagement},
		"Random":             {RandomIdentity, ParallelPodManagement, ParallelPodManagement},
		"Random has none":    {RandomIdentity, OrderedReadyPodManagement, ParallelPodManagement},
		"Ordinal by default": {OrdinalIdentity, "", OrderedReadyPodManagement},
		"Ordinal in order":   {OrdinalIdentity, OrderedReadyPodManagement, OrderedReadyPodManagement},
		"Ordinal at once":    {OrdinalIdentity, ParallelPodManagement, ParallelPodManagement},
		"no identity":        {"", "", ParallelPodManagement},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := RollSetSpec{PodIdentity: tt.identity, PodManagementPolicy: tt.policy}
			if got := spec.ManagementPolicy(); got != tt.want {
				t.Errorf("ManagementPolicy() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestClaimRetention(t *testing.T) {
	tests := map[string]struct {
		identity                PodIdentity
		policy                  *PersistentVolumeClaimRetentionPolicy
		wantDeleted, wantScaled ClaimRetentionPolicy
	}{
		"Random by default":            {RandomIdentity, nil, DeleteClaims, DeleteClaims},
		"Ordinal by default":           {OrdinalIdentity, nil, RetainClaims, RetainClaims},
		"an empty policy":              {OrdinalIdentity, &PersistentVolumeClaimRetentionPolicy{}, RetainClaims, RetainClaims},
		"half a policy for Ordinal":    {OrdinalIdentity, &PersistentVolumeClaimRetentionPolicy{WhenScaled: DeleteClaims}, RetainClaims, DeleteClaims},
		"the other half for Random":    {RandomIdentity, &PersistentVolumeClaimRetentionPolicy{WhenDeleted: RetainClaims}, RetainClaims, DeleteClaims},
		"a whole policy for Random":    {RandomIdentity, &PersistentVolumeClaimRetentionPolicy{WhenDeleted: RetainClaims, WhenScaled: RetainClaims}, RetainClaims, RetainClaims},
		"no identity counts as Random": {"", nil, DeleteClaims, DeleteClaims},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := RollSetSpec{PodIdentity: tt.identity, PersistentVolumeClaimRetentionPolicy: tt.policy}
			deleted, scaled := spec.ClaimRetention()
			if deleted != tt.wantDeleted || scaled != tt.wantScaled {
				t.Errorf("ClaimRetention() = %q, %q, want %q, %q", deleted, scaled, tt.wantDeleted, tt.wantScaled)
			}
		})
	}
}

func TestUpdatePolicy(t *testing.T) {
	tests := map[PodUpdatePolicy]PodUpdatePolicy{
		"":                    RecreatePod,
		RecreatePod:           RecreatePod,
		RecreatePodInCloneSet: RecreatePod,
		InPlaceIfPossiblePod:  InPlaceIfPossiblePod,
		InPlaceOnlyPod:        InPlaceOnlyPod,
	}
	for policy, want := range tests {
		var spec RollSetSpec
		spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = policy
		if got := spec.UpdatePolicy(); got != want {
			t.Errorf("UpdatePolicy() of %q = %q, want %q", policy, got, want)
		}
	}
}
