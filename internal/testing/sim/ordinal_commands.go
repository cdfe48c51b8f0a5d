// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1alpha1"
)

// ordinalCommands returns the commands about ordinals and claims.
func ordinalCommands() []command {
	return []command{
		specWord("reserve", func(s *v1alpha1.RollSetSpec, list string) {
			s.ReserveOrdinals = nil
			for entry := range strings.SplitSeq(list, ",") {
				s.ReserveOrdinals = append(s.ReserveOrdinals, intstr.Parse(entry))
			}
		}),
		specWord("whenDeleted", func(s *v1alpha1.RollSetSpec, v string) { retention(s).WhenDeleted = v1alpha1.ClaimRetentionPolicy(v) }),
		specWord("whenScaled", func(s *v1alpha1.RollSetSpec, v string) { retention(s).WhenScaled = v1alpha1.ClaimRetentionPolicy(v) }),
		specWord("storage", func(s *v1alpha1.RollSetSpec, size string) {
			for i := range s.VolumeClaimTemplates {
				request := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
				s.VolumeClaimTemplates[i].Spec.Resources.Requests = request
			}
		}),
	}
}

func retention(s *v1alpha1.RollSetSpec) *v1alpha1.PersistentVolumeClaimRetentionPolicy {
	if s.PersistentVolumeClaimRetentionPolicy == nil {
		s.PersistentVolumeClaimRetentionPolicy = &v1alpha1.PersistentVolumeClaimRetentionPolicy{}
	}
	return s.PersistentVolumeClaimRetentionPolicy
}
