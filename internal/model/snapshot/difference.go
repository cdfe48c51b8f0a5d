// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/defaults"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
)

// Difference returns the path of the first field in which a replica's pod differs from a reference pod of a revision in its
// place, and how it differs. It returns an empty string if they are equal.
func (s *Set) Difference(r *Replica, of Revision, reference *corev1.Pod) string {
	return cmp.Or(
		missing("metadata.labels", r.Pod.Labels, of.Template.Labels),
		missing("metadata.annotations", r.Pod.Annotations, of.Template.Annotations),
		inplace.Difference("spec", s.plain(r.Pod, r.ID, of), s.plain(reference, s.IDOf(reference.Name), of)),
	)
}

// DifferenceAsWritten does the same where the API server does not show a reference pod. It compares the pod with the template, and
// knows only what an API server without webhooks adds to pods. It returns a difference, too, if other things were added.
func (s *Set) DifferenceAsWritten(r *Replica, of Revision) string {
	want, have := defaults.Filled(&of.Template.Spec), s.plain(r.Pod, r.ID, of)
	want.Subdomain = cmp.Or(s.Spec.ServiceName, want.Subdomain)
	want.Volumes = slices.DeleteFunc(want.Volumes, func(v corev1.Volume) bool { return of.Mounts(v.Name) })
	for _, claim := range of.Claims {
		source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}
		want.Volumes = append(want.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}})
	}
	defaults.Fill(have)
	podstate.WithoutAdmission(have, want)
	want.ReadinessGates = withoutControllers(want.ReadinessGates)
	withoutMatched(want)
	slices.SortFunc(want.Volumes, func(a, b corev1.Volume) int { return cmp.Compare(a.Name, b.Name) })
	return cmp.Or(
		missing("metadata.labels", r.Pod.Labels, of.Template.Labels),
		missing("metadata.annotations", r.Pod.Annotations, of.Template.Annotations),
		inplace.Difference("spec", have, want),
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
func (s *Set) plain(pod *corev1.Pod, id string, of Revision) *corev1.PodSpec {
	spec := pod.Spec.DeepCopy()
	spec.NodeName = ""
	spec.SchedulingGates = nil
	spec.EphemeralContainers = nil
	if spec.Hostname == pod.Name {
		spec.Hostname = ""
	}
	names := map[string]string{}
	for i := range s.Spec.VolumeClaimTemplates {
		template := s.Spec.VolumeClaimTemplates[i].Name
		names[identity.ClaimName(s.Name, template, id)] = template
	}
	for _, claim := range of.Claims {
		names[identity.ClaimName(s.Name, claim.Name, id)] = claim.Name
	}
	podstate.PlainToken(spec)
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		if source := volume.PersistentVolumeClaim; source != nil && names[source.ClaimName] != "" {
			source.ClaimName = names[source.ClaimName]
		}
	}
	// A StatefulSet adds the volumes of its claim templates in an order of chance.
	slices.SortStableFunc(spec.Volumes, func(a, b corev1.Volume) int { return cmp.Compare(a.Name, b.Name) })
	spec.ReadinessGates = withoutControllers(spec.ReadinessGates)
	withoutMatched(spec)
	return spec
}

// withoutMatched drops from selectors what the API server added to them for matchLabelKeys: values of the pod's own labels, among
// them the hash of the controller that made it.
func withoutMatched(spec *corev1.PodSpec) {
	drop := func(selector *metav1.LabelSelector, keys []string) {
		if selector != nil {
			selector.MatchExpressions = slices.DeleteFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
				return slices.Contains(keys, r.Key)
			})
		}
	}
	for i := range spec.TopologySpreadConstraints {
		drop(spec.TopologySpreadConstraints[i].LabelSelector, spec.TopologySpreadConstraints[i].MatchLabelKeys)
	}
	for _, term := range affinityTerms(spec.Affinity) {
		drop(term.LabelSelector, slices.Concat(term.MatchLabelKeys, term.MismatchLabelKeys))
	}
}

// affinityTerms returns all terms of a pod's affinities to other pods.
func affinityTerms(affinity *corev1.Affinity) []*corev1.PodAffinityTerm {
	var terms []*corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			terms = append(terms, &required[i])
		}
		for i := range preferred {
			terms = append(terms, &preferred[i].PodAffinityTerm)
		}
	}
	if affinity != nil && affinity.PodAffinity != nil {
		add(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if affinity != nil && affinity.PodAntiAffinity != nil {
		add(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return terms
}

// withoutControllers drops the readiness gates that controllers, not templates, add to pods. An adopted pod works without
// RollSet's own gates. CloneSet's gate stays false once CloneSet no longer controls the pod.
func withoutControllers(gates []corev1.PodReadinessGate) []corev1.PodReadinessGate {
	var others []corev1.PodReadinessGate
	for _, gate := range gates {
		switch gate.ConditionType {
		case v1beta1.InPlaceUpdateReady, "InPlaceUpdateReady", "KruisePodReady":
		default:
			others = append(others, gate)
		}
	}
	return others
}
