// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/defaults"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/revision"
)

// Class is the kind of change that an edit makes.
type Class string

// These are the classes, the mildest first.
const (
	// Nothing changes no object but the set, and the history of its template.
	Nothing Class = "nothing"
	// Disruption changes the disruption budget of the set, and no pod.
	Disruption Class = "disruption"
	// Metadata changes labels and annotations of running pods.
	Metadata Class = "metadata"
	// Scale changes the number of pods, or which ordinals there are.
	Scale Class = "scale"
	// Claims changes claims of volumes.
	Claims Class = "claims"
	// InPlace changes running pods.
	InPlace Class = "inPlace"
	// Recreate replaces pods.
	Recreate Class = "recreate"
)

// classify returns the class of an edit, which follows from the writes, and the field that decides it.
func classify(in Input, written []Write) (class Class, field string) {
	class = classOf(written, in.After.Spec.PodIdentity)
	if in.Before == nil {
		return class, "spec.replicas"
	}
	before, after := &in.Before.Spec, &in.After.Spec
	changed := changedFields(before, after)
	moves := class == Recreate || class == InPlace || class == Metadata
	if !defaults.Same(&before.Template, &after.Template) && (moves || len(changed) == 0) {
		return class, fieldOfMove(&before.Template, &after.Template)
	}
	if len(changed) > 0 {
		return class, deciding(class, changed)
	}
	if current := templateNamed(in.Objects, in.Before.Status.CurrentRevision); moves && current != nil && !defaults.Same(current, &after.Template) {
		return class, fieldOfMove(current, &after.Template)
	}
	return class, ""
}

// classOf returns the class of writes: that of the one that changes most.
func classOf(written []Write, identity v1beta1.PodIdentity) Class {
	does := func(resource string, e effect) bool {
		return slices.ContainsFunc(written, func(w Write) bool {
			kind, _, _ := strings.Cut(w.Resource, "/")
			return kind == resource && w.effect == e
		})
	}
	const pods, claims = "pods", "persistentvolumeclaims"
	switch {
	case replaces(written, identity):
		return Recreate
	case does(pods, alters):
		return InPlace
	case does(claims, alters):
		return Claims
	case does(pods, creates), does(pods, deletes):
		return Scale
	case slices.ContainsFunc(written, func(w Write) bool { return w.Resource == claims }):
		return Claims
	case does(pods, relabels):
		return Metadata
	case slices.ContainsFunc(written, func(w Write) bool { return w.Resource == "poddisruptionbudgets" }):
		return Disruption
	default:
		return Nothing
	}
}

// replaces reports whether pods are deleted and come back: under the same name if they have ordinals.
func replaces(written []Write, identity v1beta1.PodIdentity) bool {
	gone := map[string]bool{}
	created := false
	for _, w := range written {
		switch {
		case w.Resource != "pods":
		case w.effect == deletes:
			gone[w.Name] = true
		case w.effect == creates:
			if identity == v1beta1.OrdinalIdentity && gone[w.Name] {
				return true
			}
			created = true
		}
	}
	return identity != v1beta1.OrdinalIdentity && created && len(gone) > 0
}

// deciding returns the field among the changed ones that is most about a class.
func deciding(class Class, changed []string) string {
	about := map[Class][]string{
		Scale:      {"spec.replicas", "spec.ordinals", "spec.reserveOrdinals", "spec.scaleStrategy"},
		Claims:     {"spec.volumeClaimTemplates", "spec.persistentVolumeClaimRetentionPolicy"},
		Disruption: {"spec.disruption"},
	}
	for _, prefix := range about[class] {
		for _, field := range changed {
			if strings.HasPrefix(field, prefix) {
				return field
			}
		}
	}
	return changed[0]
}

// fieldOfMove returns the field that decides how pods move from one template to another.
func fieldOfMove(from, to *corev1.PodTemplateSpec) string {
	change, cannot := inplace.Diff(from, to)
	if cannot != "" {
		path, _, _ := strings.Cut(cannot, ":")
		return "spec.template." + strings.TrimPrefix(strings.TrimPrefix(path, "."), "spec.template.")
	}
	return hardest(change)
}

// hardest returns the field of a change that is hardest to change.
func hardest(c inplace.Change) string {
	container := func(names []string, field string) string {
		return fmt.Sprintf("spec.template.spec.containers[%s].%s", slices.Min(names), field)
	}
	switch {
	case len(c.Images) > 0:
		return container(slices.Collect(maps.Keys(c.Images)), "image")
	case len(c.Resources) > 0:
		return container(slices.Collect(maps.Keys(c.Resources)), "resources")
	case len(c.Labels.Set)+len(c.Labels.Removed) > 0:
		return "spec.template.metadata.labels"
	default:
		return "spec.template.metadata.annotations"
	}
}

// changedFields returns the paths of the fields that differ between two specs, in order, except for those in the template.
func changedFields(before, after *v1beta1.RollSetSpec) []string {
	was, wasErr := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	will, willErr := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if wasErr != nil || willErr != nil {
		return []string{"spec"}
	}
	delete(was, "template")
	delete(will, "template")
	fields := differences("spec", was, will)
	slices.Sort(fields)
	return fields
}

// differences returns the paths at which two values differ. Lists are compared as a whole.
func differences(path string, was, will any) []string {
	left, isLeft := was.(map[string]any)
	right, isRight := will.(map[string]any)
	if !isLeft || !isRight {
		if apiequality.Semantic.DeepEqual(was, will) {
			return nil
		}
		return []string{path}
	}
	var fields []string
	for name, value := range left {
		fields = append(fields, differences(path+"."+name, value, right[name])...)
	}
	for name, value := range right {
		if _, both := left[name]; !both {
			fields = append(fields, differences(path+"."+name, nil, value)...)
		}
	}
	return fields
}

// templateNamed returns the template of a revision; nil if it is missing or unreadable.
func templateNamed(objects []client.Object, name string) *corev1.PodTemplateSpec {
	for _, object := range among[*appsv1.ControllerRevision](objects) {
		if object.Name == name {
			template, _, err := revision.Decode(object)
			if err != nil {
				return nil
			}
			return template
		}
	}
	return nil
}
