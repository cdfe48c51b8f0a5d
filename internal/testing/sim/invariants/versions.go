// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// revisions reads the revisions of a set. It numbers the versions of templates in the order in which they appear.
type revisions struct {
	store     *apiserver.Store
	namespace string
	templates []corev1.PodTemplateSpec
	encoded   map[string]string // versions by encoded templates
	versions  map[string]string
	held      map[*appsv1.ControllerRevision]*corev1.PodTemplateSpec
}

// revisionKey returns the key of a revision.
func (r *revisions) revisionKey(name string) apiserver.Key {
	return apiserver.Key{Kind: apiserver.Revisions, Namespace: r.namespace, Name: name}
}

// revision returns a revision by its name; nil if it does not exist.
func (r *revisions) revision(name string) *appsv1.ControllerRevision {
	object, _ := r.store.Get(r.revisionKey(name)).(*appsv1.ControllerRevision)
	return object
}

// TemplateOf returns the template in a revision; nil if it cannot be read.
func (r *revisions) TemplateOf(revision string) *corev1.PodTemplateSpec {
	return r.templateIn(r.revision(revision))
}

// records reports whether a revision has a template.
func (r *revisions) records(template *corev1.PodTemplateSpec) bool {
	version := r.VersionOf(template)
	for object := range apiserver.Each[*appsv1.ControllerRevision](r.store) {
		if other := r.templateIn(object); other != nil && r.VersionOf(other) == version {
			return true
		}
	}
	return false
}

// currentTemplate returns the template in the current revision of a set; nil if that cannot be read or is not the set's: a deleted set may
// have left it behind, or a policy may have taken it away.
func (r *revisions) currentTemplate(set *v1beta1.RollSet) *corev1.PodTemplateSpec {
	object := r.revision(set.Status.CurrentRevision)
	if object == nil || OwnerOf(object) != set.UID {
		return nil
	}
	return r.templateIn(object)
}

// templateIn returns the template in a revision; nil if it cannot be read.
func (r *revisions) templateIn(object *appsv1.ControllerRevision) *corev1.PodTemplateSpec {
	if object == nil {
		return nil
	}
	if template, ok := r.held[object]; ok {
		return template
	}
	var data struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(object.Data.Raw, &data); err != nil {
		data.Spec.Template = nil
	}
	r.held[object] = data.Spec.Template
	return data.Spec.Template
}

// Version returns v1 for a pod of the first template that the user asked for, v2 for the next, and so on.
func (r *revisions) Version(pod *corev1.Pod) string {
	return r.VersionNamed(pod.Labels[v1beta1.RevisionLabel])
}

// VersionNamed returns the version of a revision, also after the revision was deleted.
func (r *revisions) VersionNamed(revision string) string {
	if v, ok := r.versions[revision]; ok {
		return v
	}
	template := r.TemplateOf(revision)
	if template == nil {
		return "?"
	}
	v := r.VersionOf(template)
	r.versions[revision] = v
	return v
}

// VersionOf returns the version of a template. Templates are numbered in the order in which they appear.
func (r *revisions) VersionOf(template *corev1.PodTemplateSpec) string {
	encoded, err := template.Marshal()
	if v, ok := r.encoded[string(encoded)]; err == nil && ok { // most templates were seen before, and to compare them takes long
		return v
	}
	i := slices.IndexFunc(r.templates, func(t corev1.PodTemplateSpec) bool { return sameTemplate(&t, template) })
	if i < 0 {
		r.templates = append(r.templates, *template.DeepCopy())
		i = len(r.templates) - 1
	}
	v := "v" + strconv.Itoa(i+1)
	r.encoded[string(encoded)] = v
	return v
}

// sameTemplate reports whether two templates mean the same: the API server makes the same of them, also a newer one that adds a
// default.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	same := apiequality.Semantic.DeepEqual
	return same(a.Labels, b.Labels) && same(a.Annotations, b.Annotations) &&
		(same(a.Spec, b.Spec) || same(apiserver.Made(&a.Spec), apiserver.Made(&b.Spec)))
}

// Readable returns a text with v1, v2, … for the names of revisions.
func (r *revisions) Readable(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		if template := r.TemplateOf(strings.Trim(word, ",;:()")); template != nil {
			words[i] = strings.Replace(word, strings.Trim(word, ",;:()"), r.VersionOf(template), 1)
		}
	}
	return strings.Join(words, " ")
}

// TemplateNamed returns the template of a version, whose revision may have been deleted; nil if there is none.
func (r *revisions) TemplateNamed(version string) *corev1.PodTemplateSpec {
	for i := range r.templates {
		if version == "v"+strconv.Itoa(i+1) {
			return &r.templates[i]
		}
	}
	return nil
}

// Rejected reports whether the update revision of a set is rejected.
func (r *revisions) Rejected(set *v1beta1.RollSet) bool {
	object := r.revision(set.Status.UpdateRevision)
	if object == nil || !metav1.IsControlledBy(object, set) {
		return false
	}
	_, rejected := object.Annotations[rejection]
	return rejected
}

// unproven reports whether the current revision of a set was never complete.
func (r *revisions) unproven(set *v1beta1.RollSet) bool {
	return unproven(set, r.revision(set.Status.CurrentRevision))
}

// unproven reports whether an object is a revision of a set that was never complete.
func unproven(set *v1beta1.RollSet, object *appsv1.ControllerRevision) bool {
	return object != nil && OwnerOf(object) == set.UID && object.Annotations[completed] == "0"
}
