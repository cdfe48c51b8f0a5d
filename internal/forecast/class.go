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

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/defaults"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/revision"
)

// Class is the kind of change that an edit makes.
type Class string

// These are the classes, the mildest first.
const (
	// Nothing changes no object but the set.
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

// classify returns the class of an edit and the field that decides it. The writes decide whether an edit has consequences at
// all.
func classify(in Input, written []Write) (class Class, field string) {
	if in.Before == nil {
		return Scale, "metadata.name"
	}
	before, after := &in.Before.Spec, &in.After.Spec
	if !defaults.Same(&before.Template, &after.Template) {
		return classOfMove(after.UpdatePolicy(), &before.Template, &after.Template)
	}
	field = firstChange(before, after)
	switch field {
	case "spec.replicas", "spec.ordinals", "spec.reserveOrdinals", "spec.scaleStrategy":
		return classUnlessIdle(Scale, written), field
	case "spec.volumeClaimTemplates", "spec.persistentVolumeClaimRetentionPolicy":
		return classUnlessIdle(Claims, written), field
	case "spec.disruption":
		if !touchesPods(written) {
			return classUnlessIdle(Disruption, written), field
		}
	}
	if !touchesPods(written) {
		return classUnlessIdle(Claims, written), field
	}
	current := templateNamed(in.Objects, in.Before.Status.CurrentRevision)
	switch {
	case current != nil && !defaults.Same(current, &after.Template):
	case replaces(written): // pods that a user named, or whose nodes leave
		return Recreate, field
	default:
		return Scale, field
	}
	class, deciding := classOfMove(after.UpdatePolicy(), current, &after.Template)
	if field == "" {
		field = deciding
	}
	return class, field
}

// touchesPods reports whether pods are written.
func touchesPods(written []Write) bool {
	return slices.ContainsFunc(written, func(w Write) bool { return strings.HasPrefix(w.Resource, "pods") })
}

// replaces reports whether pods are both deleted and created.
func replaces(written []Write) bool {
	pods := func(verb string) bool {
		return slices.ContainsFunc(written, func(w Write) bool { return w.Resource == "pods" && w.Verb == verb })
	}
	return pods("delete") && pods("create")
}

// classUnlessIdle returns the class of an edit, or Nothing if it has no consequences.
func classUnlessIdle(class Class, written []Write) Class {
	if len(written) == 0 {
		return Nothing
	}
	return class
}

// classOfMove returns the class of a change of templates, and the first field that decides it.
func classOfMove(policy v1alpha1.PodUpdatePolicy, from, to *corev1.PodTemplateSpec) (Class, string) {
	change, cannot := inplace.Diff(from, to)
	if cannot != "" {
		path, _, _ := strings.Cut(cannot, ":")
		return Recreate, templatePath(path)
	}
	field := deciding(change)
	switch {
	case policy == v1alpha1.RecreatePod || policy == "":
		return Recreate, field
	case change.MetadataOnly():
		return Metadata, field
	default:
		return InPlace, field
	}
}

// templatePath returns the path of a field of a template from the root of the set.
func templatePath(path string) string {
	return "spec.template." + strings.TrimPrefix(strings.TrimPrefix(path, "."), "spec.template.")
}

// deciding returns the field of a change that is hardest to change.
func deciding(c inplace.Change) string {
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

// firstChange returns the first field of a spec that differs, except for the template; empty if none does.
func firstChange(before, after *v1alpha1.RollSetSpec) string {
	rolling, was := &after.UpdateStrategy.RollingUpdate, &before.UpdateStrategy.RollingUpdate
	fields := []struct {
		path      string
		was, will any
	}{
		{"spec.replicas", before.Replicas, after.Replicas},
		{"spec.ordinals", before.Ordinals, after.Ordinals},
		{"spec.reserveOrdinals", before.ReserveOrdinals, after.ReserveOrdinals},
		{"spec.volumeClaimTemplates", before.VolumeClaimTemplates, after.VolumeClaimTemplates},
		{"spec.persistentVolumeClaimRetentionPolicy", before.PersistentVolumeClaimRetentionPolicy, after.PersistentVolumeClaimRetentionPolicy},
		{"spec.scaleStrategy", before.ScaleStrategy, after.ScaleStrategy},
		{"spec.updateStrategy.rollingUpdate.partition", was.Partition, rolling.Partition},
		{"spec.updateStrategy.rollingUpdate.paused", was.Paused, rolling.Paused},
		{"spec.updateStrategy.rollingUpdate.maxUnavailable", was.MaxUnavailable, rolling.MaxUnavailable},
		{"spec.updateStrategy.rollingUpdate.maxSurge", was.MaxSurge, rolling.MaxSurge},
		{"spec.updateStrategy.type", before.UpdateStrategy.Type, after.UpdateStrategy.Type},
		{"spec.updateStrategy", before.UpdateStrategy, after.UpdateStrategy},
		{"spec.lifecycle", before.Lifecycle, after.Lifecycle},
		{"spec.disruption", before.Disruption, after.Disruption},
		{"spec", before, after},
	}
	for _, f := range fields {
		if !apiequality.Semantic.DeepEqual(f.was, f.will) {
			return f.path
		}
	}
	return ""
}

// templateNamed returns the template of a revision; nil if it is missing or unreadable.
func templateNamed[T any](objects []T, name string) *corev1.PodTemplateSpec {
	for _, obj := range objects {
		if object, ok := any(obj).(*appsv1.ControllerRevision); ok && object.Name == name {
			template, _, err := revision.Decode(object)
			if err != nil {
				return nil
			}
			return template
		}
	}
	return nil
}
