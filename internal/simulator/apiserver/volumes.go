// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import corev1 "k8s.io/api/core/v1"

// CarryOut brings the status of a claim that has a volume to what the claim asks for, as the controllers do that bind, resize and
// modify volumes.
func CarryOut(claim *corev1.PersistentVolumeClaim) {
	size := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || size.Cmp(claim.Spec.Resources.Requests[corev1.ResourceStorage]) < 0 {
		claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
	}
	if asked := claim.Spec.VolumeAttributesClassName; asked != nil && *asked != "" {
		claim.Status.CurrentVolumeAttributesClassName = asked
	}
	claim.Status.ModifyVolumeStatus, claim.Status.Conditions = nil, nil
}
