// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package adoption says which pods belong to a set, and recognizes those that came from somewhere else: a StatefulSet, a
// ReplicaSet or a CloneSet that was deleted and left its pods behind.
//
// The rule: a pod that nobody controls and that the selector matches is adopted, one that it does not match any more is
// released, and one that the API server does not let the set have, or give away, is left aside. A pod that is what the
// set's template would give gets the label of the update revision and goes on running. What the template would give is not
// for us to say: the API server is asked, without creating anything, and its defaults and admission plugins have their say.
// A pod that differs is rolled like any outdated pod; none is rolled before it is known to differ.
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

// Own says which pods without a controller to adopt, and which of the set's own to release.
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

// Adoptable reports whether the set may adopt a pod that its selector matches: one that can take the place of a pod of its
// own.
func Adoptable(o *snapshot.Set, pod *corev1.Pod) bool {
	if podstate.Terminating(pod) {
		return false
	}
	if o.Ordinal() {
		_, canonical := identity.ParseOrdinal(o.Name, pod.Name)
		return canonical
	}
	return !podstate.Finished(pod) // nothing but its name is left of it, and names are not scarce
}

// Recognize says which pods to take for pods of the update revision, or asks what such a pod would look like. If it plans
// nothing, all pods are what they are labeled as, or differ from the template.
func Recognize(o *snapshot.Set) action.Plan {
	var p action.Plan
	answer, asked := o.Preflights[o.Update.Name]
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !r.Live() || o.Known[r.Revision].Template != nil {
			continue
		}
		switch {
		case !asked, answer.Pod == nil && answer.Retry <= 0: // neither is for ever
			p.Add(action.Preflight{Revision: o.Update.Name})
			return p
		case answer.Pod != nil && Same(o, r, answer.Pod):
			p.Add(action.Relabel{Pod: r.Pod, Revision: o.Update.Name})
		}
	}
	return p
}

// Same says whether a replica's pod is what another pod of the set, of whatever identity, would be in its place.
func Same(o *snapshot.Set, r *snapshot.Replica, reference *corev1.Pod) bool {
	return Difference(o, r, reference) == ""
}

// Difference is the path of the first field in which a replica's pod is not what another pod of the set would be in its place,
// and how it differs; empty if it is the same.
func Difference(o *snapshot.Set, r *snapshot.Replica, reference *corev1.Pod) string {
	return cmp.Or(
		missing("metadata.labels", r.Pod.Labels, o.Update.Template.Labels),
		missing("metadata.annotations", r.Pod.Annotations, o.Update.Template.Annotations),
		inplace.Difference("spec", plain(o, r.Pod, r.ID), plain(o, reference, o.IDOf(reference.Name))),
	)
}

// missing is the first of some labels that is not among a pod's, and whether the pod has another value.
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

// plain is a pod's spec without what differs between pods of one template: the node, the identity, random names, and
// what comes and goes while the pod runs.
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

// tokenVolume is how the volume begins under which the API server gives a pod its service account's token; how it goes
// on is random.
const tokenVolume = "kube-api-access-"

// PlainToken takes what is random off the name of the volume that has a pod's token, so that nobody has to tell it from
// that of another pod.
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
	if len(*name) > len(tokenVolume) && strings.HasPrefix(*name, tokenVolume) { // a spec that is shared is plain, and not written to
		*name = tokenVolume
	}
}

// withoutControllers leaves out the readiness gates that controllers, and no templates, give to pods. What we would give is
// missing from a pod of somebody else, which does without. What CloneSet gives to each of its pods stays open when nobody
// minds it any more.
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
