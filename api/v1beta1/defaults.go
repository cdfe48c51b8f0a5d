// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// The schema holds every default that is the same for all sets. The defaults below depend on podIdentity, which a schema
// cannot express. They are resolved when read, so that a field that a user did not set stays unset.

// ManagementPolicy returns podManagementPolicy, or its default. It is Parallel for every podIdentity but Ordinal.
func (s *RollSetSpec) ManagementPolicy() PodManagementPolicy {
	if s.PodIdentity == OrdinalIdentity && s.PodManagementPolicy != ParallelPodManagement {
		return OrderedReadyPodManagement
	}
	return ParallelPodManagement
}

// ClaimRetention returns the halves of persistentVolumeClaimRetentionPolicy, or their defaults: Retain for podIdentity
// Ordinal, whose names come back, and Delete for Random, whose names do not.
func (s *RollSetSpec) ClaimRetention() (whenDeleted, whenScaled ClaimRetentionPolicy) {
	whenDeleted = DeleteClaims
	if s.PodIdentity == OrdinalIdentity {
		whenDeleted = RetainClaims
	}
	whenScaled = whenDeleted
	if p := s.PersistentVolumeClaimRetentionPolicy; p != nil {
		if p.WhenDeleted != "" {
			whenDeleted = p.WhenDeleted
		}
		if p.WhenScaled != "" {
			whenScaled = p.WhenScaled
		}
	}
	return whenDeleted, whenScaled
}

// UpdatePolicy returns podUpdatePolicy in the spelling of this API, or its default.
func (s *RollSetSpec) UpdatePolicy() PodUpdatePolicy {
	switch policy := s.UpdateStrategy.RollingUpdate.PodUpdatePolicy; policy {
	case InPlaceIfPossiblePod, InPlaceOnlyPod:
		return policy
	default:
		return RecreatePod
	}
}

// ReplacesOnDrain reports whether the pods of a node that leaves are replaced.
func (s *RollSetSpec) ReplacesOnDrain() bool {
	return s.Disruption != nil && s.Disruption.OnDrain == ReplaceOnDrain
}

// LeavingTaints returns the keys of the taints that mark a node that leaves.
func (s *RollSetSpec) LeavingTaints() []string {
	if s.Disruption != nil && s.Disruption.DrainTaints != nil {
		return s.Disruption.DrainTaints
	}
	return []string{"karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"}
}

// WantsBudget reports whether the set has a PodDisruptionBudget of its own, unless another one selects its pods.
func (s *RollSetSpec) WantsBudget() bool {
	return s.Disruption != nil && s.Disruption.PodDisruptionBudget == AutoBudget
}
