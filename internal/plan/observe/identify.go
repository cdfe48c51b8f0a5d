// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Identify returns the identity of a pod. A pod that was adopted under a name that the set would not give has its whole name
// as identity.
func Identify(set *v1beta1.RollSet, pod string) (id string, ordinal int) {
	if set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		if n, ok := identity.ParseOrdinal(set.Name, pod); ok {
			return strconv.Itoa(n), n
		}
		return pod, -1
	}
	if id, ok := identity.ParseID(set.Name, pod); ok {
		return id, -1
	}
	return pod, -1
}

// claimTemplates returns the names of the claim templates of the spec, and of all usable revisions.
func (m *Memory) claimTemplates(o *snapshot.Objects) []string {
	var names []string
	for i := range o.Set.Spec.VolumeClaimTemplates {
		names = append(names, o.Set.Spec.VolumeClaimTemplates[i].Name)
	}
	for _, object := range o.Revisions {
		_, recorded, _ := m.Decoder.Decode(object) // an unusable revision has none
		names = append(names, recorded...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// identifyClaim returns the identity of a claim: by its labels or, if another kind of workload or a user made it without
// labels, by its name and those of the templates. Pods mount claims by name, so labels count only if the name agrees with them.
func identifyClaim(set *v1beta1.RollSet, templates []string, claim *corev1.PersistentVolumeClaim) (id string, ordinal int, ok bool) {
	key := v1beta1.InstanceIDLabel
	if set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		key = v1beta1.PodIndexLabel
	}
	_, labeled := claim.Labels[v1beta1.SetLabel]
	if id = claim.Labels[key]; id == "" || !labeled || !strings.HasSuffix(claim.Name, identity.ClaimName(set.Name, "", id)) {
		id, _ = identity.ClaimID(set.Name, templates, claim.Name)
	}
	known, ordinal := Identify(set, identity.PodName(set.Name, id))
	return id, ordinal, known == id // else nothing that we would write
}

// ClassesOf returns the needed part of storage classes, by their names.
func ClassesOf(items []storagev1.StorageClass) map[string]snapshot.Class {
	classes := make(map[string]snapshot.Class, len(items))
	for i := range items {
		expandable, mode := items[i].AllowVolumeExpansion, items[i].VolumeBindingMode
		classes[items[i].Name] = snapshot.Class{
			Expandable: expandable != nil && *expandable,
			Immediate:  mode == nil || *mode == storagev1.VolumeBindingImmediate,
		}
	}
	return classes
}
