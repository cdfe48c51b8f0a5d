// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// ClaimTemplatesAnnotation carries, on a ControllerRevision, the claim templates of the spec from which the revision was
// made, as a JSON list. They are used to create claims when the spec no longer has a template of that name. They are not
// part of the revision's content: another size in a claim template makes no new revision.
const ClaimTemplatesAnnotation = "apps.rollset.dev/claim-templates"

// maxClaimTemplates bounds that annotation, in bytes. All annotations of an object together may have 256 KiB.
const maxClaimTemplates = 128 << 10

// claimTemplateKept is the part of a claim template that is kept: what claims are created from.
type claimTemplateKept struct {
	Metadata metav1.ObjectMeta                `json:"metadata"`
	Spec     corev1.PersistentVolumeClaimSpec `json:"spec"`
}

// setClaims records the claim templates of a spec on a ControllerRevision. It reports false if there are none, or if they
// are too large.
func setClaims(object *appsv1.ControllerRevision, spec *v1beta1.RollSetSpec) bool {
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

// rememberClaims records the claim templates of the spec on the ControllerRevision of the update revision, if an earlier
// version of this program made it, or the annotation was removed or lacks a template. It reports whether that must be written.
func (r *resolver) rememberClaims(found record, object *appsv1.ControllerRevision) bool {
	return len(found.claims) > 0 && !r.keepsClaims(found) && setClaims(object, &r.Set.Spec)
}

// keepsClaims reports whether the claim templates of a revision can be read from its ControllerRevision.
func (r *resolver) keepsClaims(found record) bool {
	if r.KeepsClaims != nil {
		return r.KeepsClaims(found.object)
	}
	return keeps(found.object, found.claims)
}

// keeps reports whether the claim templates with the given names can be read from a ControllerRevision.
func keeps(object *appsv1.ControllerRevision, names []string) bool {
	if len(names) == 0 {
		return true
	}
	kept := keptClaims(object)
	return !slices.ContainsFunc(names, func(name string) bool { return templateNamed(kept, name) == nil })
}

// keptClaims returns the claim templates on a ControllerRevision; none if the annotation cannot be read.
func keptClaims(object *appsv1.ControllerRevision) (kept []corev1.PersistentVolumeClaim) {
	if err := json.Unmarshal([]byte(object.Annotations[ClaimTemplatesAnnotation]), &kept); err != nil {
		return nil
	}
	return kept
}

// claimTemplates returns the claim templates of a revision. It takes those of the spec where it has them, because a user's
// change applies to new claims of every revision. It takes others from the revision.
func claimTemplates(spec *v1beta1.RollSetSpec, object *appsv1.ControllerRevision, names []string) []snapshot.ClaimTemplate {
	found := make([]snapshot.ClaimTemplate, 0, len(names))
	for i := range spec.VolumeClaimTemplates {
		if t := &spec.VolumeClaimTemplates[i]; slices.Contains(names, t.Name) {
			found = append(found, snapshot.ClaimTemplate{Name: t.Name, Template: t})
		}
	}
	if len(found) == len(names) { // the usual case: nothing is decoded
		return found
	}
	kept := keptClaims(object)
	for _, name := range names {
		if templateNamed(spec.VolumeClaimTemplates, name) == nil {
			found = append(found, snapshot.ClaimTemplate{Name: name, Template: templateNamed(kept, name)})
		}
	}
	return found
}

// templateNamed returns the claim template with a name; nil if there is none.
func templateNamed(templates []corev1.PersistentVolumeClaim, name string) *corev1.PersistentVolumeClaim {
	for i := range templates {
		if templates[i].Name == name {
			return &templates[i]
		}
	}
	return nil
}
