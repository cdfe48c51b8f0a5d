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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// TemplateOf returns the template in a revision; nil if it cannot be read.
func (c *Cluster) TemplateOf(revision string) *corev1.PodTemplateSpec {
	return c.templateIn(c.Store.Get(apiserver.Key{Kind: apiserver.Revisions, Namespace: c.set.Namespace, Name: revision}))
}

// records reports whether a revision has a template.
func (c *Cluster) records(template *corev1.PodTemplateSpec) bool {
	version := c.VersionOf(template)
	for r := range apiserver.Each[*appsv1.ControllerRevision](c.Store) {
		if other := c.templateIn(r); other != nil && c.VersionOf(other) == version {
			return true
		}
	}
	return false
}

// currentTemplate returns the template in the current revision of a set; nil if that cannot be read or is not the set's: a deleted set may
// have left it behind, or a policy may have taken it away.
func (c *Cluster) currentTemplate(set *v1beta1.RollSet) *corev1.PodTemplateSpec {
	revision := c.Store.Get(apiserver.Key{Kind: apiserver.Revisions, Namespace: c.set.Namespace, Name: set.Status.CurrentRevision})
	if revision == nil || OwnerOf(revision) != set.UID {
		return nil
	}
	return c.templateIn(revision)
}

// templateIn returns the template in an object; nil if it is not a readable revision.
func (c *Cluster) templateIn(revision client.Object) *corev1.PodTemplateSpec {
	object, ok := revision.(*appsv1.ControllerRevision)
	if !ok {
		return nil
	}
	if template, ok := c.held[object]; ok {
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
	c.held[object] = data.Spec.Template
	return data.Spec.Template
}

// Version returns v1 for a pod of the first template that the user asked for, v2 for the next, and so on.
func (c *Cluster) Version(pod *corev1.Pod) string {
	return c.VersionNamed(pod.Labels[v1beta1.RevisionLabel])
}

// VersionNamed returns the version of a revision, also after the revision was deleted.
func (c *Cluster) VersionNamed(revision string) string {
	if v, ok := c.versions[revision]; ok {
		return v
	}
	template := c.TemplateOf(revision)
	if template == nil {
		return "?"
	}
	v := c.VersionOf(template)
	c.versions[revision] = v
	return v
}

// VersionOf returns the version of a template. Templates are numbered in the order in which they appear.
func (c *Cluster) VersionOf(template *corev1.PodTemplateSpec) string {
	encoded, err := template.Marshal()
	if v, ok := c.encoded[string(encoded)]; err == nil && ok { // most templates were seen before, and to compare them takes long
		return v
	}
	i := slices.IndexFunc(c.templates, func(t corev1.PodTemplateSpec) bool { return sameTemplate(&t, template) })
	if i < 0 {
		c.templates = append(c.templates, *template.DeepCopy())
		i = len(c.templates) - 1
	}
	v := "v" + strconv.Itoa(i+1)
	c.encoded[string(encoded)] = v
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
func (c *Cluster) Readable(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		if template := c.TemplateOf(strings.Trim(word, ",;:()")); template != nil {
			words[i] = strings.Replace(word, strings.Trim(word, ",;:()"), c.VersionOf(template), 1)
		}
	}
	return strings.Join(words, " ")
}

// TemplateNamed returns the template of a version, whose revision may have been deleted; nil if there is none.
func (c *Cluster) TemplateNamed(version string) *corev1.PodTemplateSpec {
	for i := range c.templates {
		if version == "v"+strconv.Itoa(i+1) {
			return &c.templates[i]
		}
	}
	return nil
}

// knewAt reports whether the manager knew a pod at a revision when it planned: the cache shows it there, or the manager has brought it
// there. The answer to another write of the pod may show what another manager did.
func (v *verdict) knewAt(pod *corev1.Pod, revision string) bool {
	isAt := func(obj client.Object) bool {
		p, ok := obj.(*corev1.Pod)
		return ok && p.UID == pod.UID && p.Labels[v1beta1.RevisionLabel] == revision
	}
	if isAt(v.checker.reconcile.View.Cached(apiserver.KeyOf(pod))) {
		return true
	}
	for own := range v.checker.reconcile.View.Unseen(apiserver.Pods) {
		if own.Actor == v.Actor && isAt(own.New) && !isAt(own.Old) {
			return true
		}
	}
	return false
}

// isStray reports whether a pod is neither at the current nor at the update revision.
func (v *verdict) isStray(pod *corev1.Pod) bool {
	version := v.world.Version(pod)
	return version != v.world.VersionNamed(v.set.Status.CurrentRevision) && version != v.world.VersionOf(&v.set.Spec.Template)
}
