// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Obstacle returns why the pod of an identity cannot use the claim that has the right name; empty if it can.
func Obstacle(snap *snapshot.Set, r *snapshot.Replica, claim *corev1.PersistentVolumeClaim) string {
	owner := metav1.GetControllerOfNoCopy(claim)
	inUse := r.Pod != nil && Mounts(r.Pod, claim.Name)
	switch other, labeled := claim.Labels[v1beta1.SetLabel]; {
	case owner != nil && owner.Kind == "Pod" && owner.Name == snap.PodName(r.ID) && !ownedByPodOf(r, owner):
		return fmt.Sprintf("claim %s goes with an earlier pod %s, and is made anew when it is gone", claim.Name, owner.Name)
	case owner != nil && owner.UID != snap.UID && !ownedByPodOf(r, owner):
		return fmt.Sprintf("claim %s belongs to %s %s; delete the claim, or rename the claim template", claim.Name, owner.Kind, owner.Name)
	case labeled && other != snap.Name && (!inUse || identity.Names(claim.Name, other)): // else a user has changed the label
		return fmt.Sprintf("claim %s belongs to the set %s; rename the claim template, or, if the data is this set's, give the claim the label %s=%s",
			claim.Name, other, v1beta1.SetLabel, snap.Name)
	case !labeled && contradicts(snap.Spec.Selector, claim.Labels) && !inUse:
		return fmt.Sprintf("claim %s has labels that the selector does not match, so it is another workload's; "+
			"rename the claim template, or give the claim the label %s=%s", claim.Name, v1beta1.SetLabel, snap.Name)
	case claim.DeletionTimestamp != nil:
		return fmt.Sprintf("claim %s is being deleted and still in use", claim.Name)
	default:
		return ""
	}
}

// contradicts reports whether a claim's labels name another selector. StatefulSets label their claims with what their
// selectors match. A claim without labels contradicts nothing.
func contradicts(selector *metav1.LabelSelector, labels map[string]string) bool {
	if selector == nil || len(labels) == 0 {
		return false
	}
	for key, value := range selector.MatchLabels {
		if labels[key] != value {
			return true
		}
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		value, ok := labels[r.Key]
		switch r.Operator {
		case metav1.LabelSelectorOpIn:
			return ok && !slices.Contains(r.Values, value)
		case metav1.LabelSelectorOpNotIn:
			return ok && slices.Contains(r.Values, value)
		case metav1.LabelSelectorOpDoesNotExist:
			return ok
		case metav1.LabelSelectorOpExists:
			return false
		default:
			return false
		}
	})
}

// ownedByPodOf reports whether an owner is the replica's own pod, to which the claim was handed over.
func ownedByPodOf(r *snapshot.Replica, owner *metav1.OwnerReference) bool {
	return r.Pod != nil && owner.UID == r.Pod.UID
}

// Mounts reports whether a pod mounts a claim of this name.
func Mounts(pod *corev1.Pod, claim string) bool {
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].PersistentVolumeClaim; source != nil && source.ClaimName == claim {
			return true
		}
	}
	return false
}
