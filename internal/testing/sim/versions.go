// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// pods are all pods, in order of creation; pods with ordinals in the order of these.
func (w *World) pods() []*corev1.Pod {
	pods := slices.Collect(apiserver.Each[*corev1.Pod](w.Store))
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(ordinal(a), ordinal(b)), cmp.Compare(a.UID, b.UID))
	})
	return pods
}

// mark is the state of a pod in one character.
func (w *World) mark(pod *corev1.Pod) string {
	minReady := int32(0)
	if set := w.Set(); set != nil {
		minReady = set.Spec.MinReadySeconds
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return "x"
	case apiserver.HasEnded(pod):
		return "!"
	case isUpdating(pod):
		return "~"
	case isAvailable(pod, minReady, w.Now()):
		return "+"
	case isReady(pod):
		return "r"
	default:
		return "."
	}
}

// isUpdating says whether a pod was taken out of service by its gate. A pod without the gate heeds no condition of that
// name, whoever writes it.
func isUpdating(pod *corev1.Pod) bool {
	gated := slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == v1alpha1.InPlaceUpdateReady
	})
	return gated && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == v1alpha1.InPlaceUpdateReady && c.Status == corev1.ConditionFalse
	})
}

// condition is the state of a pod in a word.
func (w *World) condition(pod *corev1.Pod) string {
	switch w.mark(pod) {
	case "!":
		return string(pod.Status.Phase)
	case "+":
		return "available"
	case "r":
		return "ready"
	case "~":
		return "being updated"
	case "x":
		return "terminating"
	default:
		return "not ready"
	}
}

// templateOf is the template that a revision holds; nil if it cannot be read.
func (w *World) templateOf(revision string) *corev1.PodTemplateSpec {
	return w.templateIn(w.Store.Get(apiserver.Key{Kind: apiserver.Revisions, Namespace: Namespace, Name: revision}))
}

// templateIn is the template that an object holds; nil if it is no readable revision.
func (w *World) templateIn(revision client.Object) *corev1.PodTemplateSpec {
	object, ok := revision.(*appsv1.ControllerRevision)
	if !ok {
		return nil
	}
	if template, ok := w.held[object]; ok {
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
	w.held[object] = data.Spec.Template
	return data.Spec.Template
}

// version is v1 for a pod of the first template that the user asked for, v2 for the next, and so on.
func (w *World) version(pod *corev1.Pod) string {
	return w.versionNamed(pod.Labels[v1alpha1.RevisionLabel])
}

// versionNamed is the version of a revision, which it keeps when a user deletes it.
func (w *World) versionNamed(revision string) string {
	if v, ok := w.versions[revision]; ok {
		return v
	}
	template := w.templateOf(revision)
	if template == nil {
		return "?"
	}
	v := w.versionOf(template)
	w.versions[revision] = v
	return v
}

// versionOf numbers templates by order of appearance.
func (w *World) versionOf(template *corev1.PodTemplateSpec) string {
	i := slices.IndexFunc(w.templates, func(t corev1.PodTemplateSpec) bool { return sameTemplate(&t, template) })
	if i < 0 {
		w.templates = append(w.templates, *template.DeepCopy())
		i = len(w.templates) - 1
	}
	return "v" + strconv.Itoa(i+1)
}

// sameTemplate says whether two templates mean the same; a default that a newer API server adds makes no difference.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	if a.Spec.ShareProcessNamespace != b.Spec.ShareProcessNamespace {
		a, b = a.DeepCopy(), b.DeepCopy()
		apiserver.DefaultLate(&a.Spec)
		apiserver.DefaultLate(&b.Spec)
	}
	return apiequality.Semantic.DeepEqual(a.Labels, b.Labels) &&
		apiequality.Semantic.DeepEqual(a.Annotations, b.Annotations) &&
		apiequality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// readable writes v1, v2, … for the names of revisions.
func (w *World) readable(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		if template := w.templateOf(strings.Trim(word, ",;:()")); template != nil {
			words[i] = strings.Replace(word, strings.Trim(word, ",;:()"), w.versionOf(template), 1)
		}
	}
	return strings.Join(words, " ")
}
