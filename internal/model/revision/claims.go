// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// ClaimTemplatesAnnotation carries, on a ControllerRevision, the claim templates that the spec had when the revision was made,
// as a JSON list. Claims are made from them when the spec has no template of that name any more. They are no part of what the
// name of the revision stands for: another size in a claim template makes no other revision.
const ClaimTemplatesAnnotation = "apps.rollset.dev/claim-templates"

// maxClaimTemplates bounds that annotation, in bytes. All annotations of an object together may have 256 KiB.
const maxClaimTemplates = 128 << 10

// claimTemplateKept is what of a claim template is kept: what claims are made from.
type claimTemplateKept struct {
	Metadata metav1.ObjectMeta                `json:"metadata"`
	Spec     corev1.PersistentVolumeClaimSpec `json:"spec"`
}

// setClaims notes the claim templates of a spec on a ControllerRevision, and reports whether it did: there may be none, or too
// much of them.
func setClaims(object *appsv1.ControllerRevision, spec *v1alpha1.RollSetSpec) bool {
	if len(spec.VolumeClaimTemplates) == 0 {
		return false
	}
	templates := make([]claimTemplateKept, len(spec.VolumeClaimTemplates))
	for i := range spec.VolumeClaimTemplates {
		t := &spec.VolumeClaimTemplates[i]
		templates[i].Metadata = metav1.ObjectMeta{Name: t.Name, Labels: t.Labels, Annotations: t.Annotations}
		templates[i].Spec = t.Spec
	}
	raw, err := json.Marshal(templates)
	if err != nil || len(raw) > maxClaimTemplates {
		return false
	}
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, ClaimTemplatesAnnotation, string(raw))
	return true
}

// rememberClaims notes the claim templates of the spec on the ControllerRevision of the update revision if an earlier version
// of this program made it, or somebody took the note off. It reports whether that is to be written.
func (r *resolver) rememberClaims(found record, object *appsv1.ControllerRevision) bool {
	return len(found.claims) > 0 && !has(object, ClaimTemplatesAnnotation) && setClaims(object, &r.Set.Spec)
}

// claimTemplates are the claim templates of a revision: those of the spec where it has them, for what users change in them is
// for new claims at every revision, else those with which the revision was made.
func claimTemplates(spec *v1alpha1.RollSetSpec, object *appsv1.ControllerRevision, names []string) []snapshot.ClaimTemplate {
	found := make([]snapshot.ClaimTemplate, 0, len(names))
	for i := range spec.VolumeClaimTemplates {
		if t := &spec.VolumeClaimTemplates[i]; slices.Contains(names, t.Name) {
			found = append(found, snapshot.ClaimTemplate{Name: t.Name, Template: t})
		}
	}
	if len(found) == len(names) { // as it is nearly always: nothing is decoded
		return found
	}
	var kept []corev1.PersistentVolumeClaim
	if err := json.Unmarshal([]byte(object.Annotations[ClaimTemplatesAnnotation]), &kept); err != nil {
		kept = nil // what cannot be read counts for nothing
	}
	for _, name := range names {
		if templateNamed(spec.VolumeClaimTemplates, name) == nil {
			found = append(found, snapshot.ClaimTemplate{Name: name, Template: templateNamed(kept, name)})
		}
	}
	return found
}

// templateNamed is the claim template of a name; nil if there is none.
func templateNamed(templates []corev1.PersistentVolumeClaim, name string) *corev1.PersistentVolumeClaim {
	for i := range templates {
		if templates[i].Name == name {
			return &templates[i]
		}
	}
	return nil
}
