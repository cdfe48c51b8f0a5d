// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Build returns the pod of an identity, made from the template of a revision.
func Build(set *v1beta1.RollSet, revision snapshot.Revision, id string) *corev1.Pod {
	template := revision.Template
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            identity.PodName(set.Name, id),
			Namespace:       set.Namespace,
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{claims.Owner(set.Name, set.UID)},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[v1beta1.RevisionLabel] = revision.Name
	maps.Copy(pod.Labels, identityLabels(set, id))
	if set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		pod.Labels[v1beta1.PodNameLabel] = pod.Name
		pod.Spec.Hostname = pod.Name
	}
	if set.Spec.ServiceName != "" {
		pod.Spec.Subdomain = set.Spec.ServiceName
	}
	mountClaims(set, revision, pod, id)
	if state := lifecycle.First(&set.Spec, pod); state != "" {
		pod.Labels[v1beta1.LifecycleStateLabel] = string(state)
	}
	withdraws := lifecycle.Withdraws(&set.Spec, v1beta1.LifecyclePreparingNormal, v1beta1.LifecyclePreparingUpdate, v1beta1.LifecyclePreparingDelete)
	if withdraws || set.Spec.UpdatePolicy() != v1beta1.RecreatePod {
		pod.Spec.ReadinessGates = withGate(pod.Spec.ReadinessGates)
	}
	return pod
}

// withGate adds the readiness gate that turns traffic away while a pod is updated in place or waits for a hook. It is added
// at creation because the gates of a pod are immutable.
func withGate(gates []corev1.PodReadinessGate) []corev1.PodReadinessGate {
	gate := corev1.PodReadinessGate{ConditionType: v1beta1.InPlaceUpdateReady}
	if slices.Contains(gates, gate) {
		return gates
	}
	return append(gates, gate)
}

// identityLabels returns the labels that name the identity of a pod or claim.
func identityLabels(set *v1beta1.RollSet, id string) map[string]string {
	if set.Spec.PodIdentity == v1beta1.OrdinalIdentity {
		return map[string]string{v1beta1.PodIndexLabel: id}
	}
	return map[string]string{v1beta1.InstanceIDLabel: id}
}

// mountClaims adds the volumes for the claims of an identity to its pod. A claim template replaces a volume of the pod
// template with the same name, as in a StatefulSet.
func mountClaims(set *v1beta1.RollSet, revision snapshot.Revision, pod *corev1.Pod, id string) {
	if len(revision.Claims) == 0 {
		return
	}
	volumes := make([]corev1.Volume, 0, len(revision.Claims)+len(pod.Spec.Volumes))
	for _, claim := range revision.Claims {
		source := corev1.PersistentVolumeClaimVolumeSource{ClaimName: identity.ClaimName(set.Name, claim.Name, id)}
		volumes = append(volumes, corev1.Volume{
			Name:         claim.Name,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &source},
		})
	}
	for _, v := range pod.Spec.Volumes {
		if !revision.Mounts(v.Name) {
			volumes = append(volumes, v)
		}
	}
	pod.Spec.Volumes = volumes
}
