// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package adoption decides which pods belong to a set. It also recognizes pods that a deleted StatefulSet, ReplicaSet or
// CloneSet left behind.
//
// The rule: a set adopts pods that its selector matches and that have no controller. It releases pods that its selector no
// longer matches. It leaves aside a pod that the API server does not let it adopt or release. An adopted pod that equals
// what the set's template would give gets the label of the update revision and keeps running. The API server decides what
// the template would give, by a dry run, because its defaults and admission plugins change pods. A pod that differs is
// updated like any outdated pod, but not before it is known to differ.
package adoption

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Own plans which pods without a controller to adopt, and which of the set's own pods to release.
func Own(o *snapshot.Set) action.Plan {
	p := action.Plan{EveryHold: o.EveryHold}
	for _, pod := range o.Leaving {
		p.Add(action.Release{Pod: pod})
	}
	for _, pod := range o.Orphans {
		if Adoptable(o, pod) {
			p.Add(action.Adopt{Pod: pod})
		}
	}
	return p
}

// Adoptable reports whether the set may adopt a pod that its selector matches. The pod must be able to take the place of one
// of the set's own.
func Adoptable(o *snapshot.Set, pod *corev1.Pod) bool {
	if podstate.Terminating(pod) {
		return false
	}
	if o.Ordinal() {
		_, canonical := identity.ParseOrdinal(o.Name, pod.Name)
		return canonical
	}
	return !podstate.Finished(pod) // a finished pod leaves only its name, and names are not scarce
}

// Recognize plans which pods to label with the update revision, or asks the API server what such a pod would look like. If
// it plans nothing, every pod has the right label or differs from the template.
func Recognize(o *snapshot.Set) action.Plan {
	var p action.Plan
	answer, asked := o.Preflights[o.Update.Name]
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !r.Live() || o.Known[r.Revision].Template != nil {
			continue
		}
		switch {
		case !asked, answer.Pod == nil && answer.Retry <= 0: // both expire
			p.Add(action.Preflight{Revision: o.Update.Name})
			return p
		case answer.Pod != nil && Same(o, r, answer.Pod):
			p.Add(action.Relabel{Pod: r.Pod, Revision: o.Update.Name})
		}
	}
	return p
}

// Same reports whether a replica's pod equals what a reference pod of the set, of any identity, would be in its place.
func Same(o *snapshot.Set, r *snapshot.Replica, reference *corev1.Pod) bool {
	return Difference(o, r, reference) == ""
}

// Difference returns the path of the first field in which a replica's pod differs from a reference pod of the set in its
// place, and how it differs. It returns an empty string if they are equal.
func Difference(o *snapshot.Set, r *snapshot.Replica, reference *corev1.Pod) string {
	return cmp.Or(
		missing("metadata.labels", r.Pod.Labels, o.Update.Template.Labels),
		missing("metadata.annotations", r.Pod.Annotations, o.Update.Template.Annotations),
		inplace.Difference("spec", plain(o, r.Pod, r.ID), plain(o, reference, o.IDOf(reference.Name))),
	)
}

// missing describes the first wanted label that a pod lacks or has with another value.
func missing(path string, have, want map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch got, ok := have[key]; {
		case !ok:
			return path + "[" + key + "]: added"
		case got != want[key]:
			return path + "[" + key + "]: changed"
		}
	}
	return ""
}

// plain returns a pod's spec without what differs between pods of one template: node, identity, random names, and fields
// that change while the pod runs.
func plain(o *snapshot.Set, pod *corev1.Pod, id string) *corev1.PodSpec {
	spec := pod.Spec.DeepCopy()
	spec.NodeName = ""
	spec.SchedulingGates = nil
	spec.EphemeralContainers = nil
	if spec.Hostname == pod.Name {
		spec.Hostname = ""
	}
	names := map[string]string{}
	for i := range o.Spec.VolumeClaimTemplates {
		template := o.Spec.VolumeClaimTemplates[i].Name
		names[claims.Name(o.Name, template, id)] = template
	}
	PlainToken(spec)
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		if source := volume.PersistentVolumeClaim; source != nil && names[source.ClaimName] != "" {
			source.ClaimName = names[source.ClaimName]
		}
	}
	spec.ReadinessGates = withoutControllers(spec.ReadinessGates)
	return spec
}

// tokenVolume is the prefix of the volume that holds a pod's service account token. The API server appends a random suffix.
const tokenVolume = "kube-api-access-"

// PlainToken removes the random suffix from the name of a pod's token volume, so that specs of two pods compare equal.
func PlainToken(spec *corev1.PodSpec) {
	for i := range spec.Volumes {
		plainVolume(&spec.Volumes[i].Name)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			mounts := containers[i].VolumeMounts
			for j := range mounts {
				plainVolume(&mounts[j].Name)
			}
		}
	}
}

func plainVolume(name *string) {
	if len(*name) > len(tokenVolume) && strings.HasPrefix(*name, tokenVolume) { // a shared spec is already plain, and must not be written to
		*name = tokenVolume
	}
}

// withoutControllers drops the readiness gates that controllers, not templates, add to pods. An adopted pod works without
// RollSet's own gates. CloneSet's gate stays false once CloneSet no longer controls the pod.
func withoutControllers(gates []corev1.PodReadinessGate) []corev1.PodReadinessGate {
	var others []corev1.PodReadinessGate
	for _, gate := range gates {
		switch gate.ConditionType {
		case v1alpha1.InPlaceUpdateReady, "InPlaceUpdateReady", "KruisePodReady":
		default:
			others = append(others, gate)
		}
	}
	return others
}
