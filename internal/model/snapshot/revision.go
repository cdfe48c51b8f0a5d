// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
)

// Revision is one template of the set.
type Revision struct {
	// Name is the name of the ControllerRevision, and the value of the pods' revision label.
	Name string
	// Number orders revisions; the highest is the newest.
	Number int64
	// Since is when the ControllerRevision was made, in seconds since 1970; 0 if it is not known.
	Since int64
	// Template is nil if the ControllerRevision is lost: then no pod can be made from it.
	Template *corev1.PodTemplateSpec
	// Claims are the claims that each of its pods mounts, by the names of their templates.
	Claims []ClaimTemplate
}

// ClaimTemplate is the template of a claim.
type ClaimTemplate struct {
	// Name is the name of the template, and of the pod's volume.
	Name string
	// Template is nil if it is lost: then an existing claim is used, and none can be created.
	Template *corev1.PersistentVolumeClaim
}

// RevisionOf returns a spec as a revision with a name.
func RevisionOf(name string, spec *v1beta1.RollSetSpec) Revision {
	r := Revision{Name: name, Template: &spec.Template}
	for i := range spec.VolumeClaimTemplates {
		template := &spec.VolumeClaimTemplates[i]
		r.Claims = append(r.Claims, ClaimTemplate{Name: template.Name, Template: template})
	}
	return r
}

// Mounts reports whether pods of the revision mount a claim of a template.
func (r Revision) Mounts(template string) bool {
	return slices.ContainsFunc(r.Claims, func(c ClaimTemplate) bool { return c.Name == template })
}

// Change returns the change from one revision to another, or why it cannot be made in place.
func (r *Revisions) Change(from, to string) (c inplace.Change, cannot string) {
	before, after := r.Known[from], r.Known[to]
	if before.Template == nil || after.Template == nil {
		return inplace.Diff(before.Template, after.Template)
	}
	for _, claim := range after.Claims {
		if !before.Mounts(claim.Name) {
			return c, "volumeClaimTemplates: " + claim.Name + " is added"
		}
	}
	for _, claim := range before.Claims {
		if !after.Mounts(claim.Name) {
			return c, "volumeClaimTemplates: " + claim.Name + " is removed"
		}
	}
	return inplace.Diff(before.Template, after.Template)
}
