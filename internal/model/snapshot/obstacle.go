// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/podstate"
)

// ClaimObstacle returns why the pod of an identity cannot use the claim that has the right name; empty if it can.
func (s *Settings) ClaimObstacle(r *Replica, claim *corev1.PersistentVolumeClaim) string {
	owner := metav1.GetControllerOfNoCopy(claim)
	inUse := r.Pod != nil && podstate.Mounts(r.Pod, claim.Name)
	switch other, labeled := claim.Labels[v1beta1.SetLabel]; {
	case owner != nil && owner.Kind == "Pod" && owner.Name == s.PodName(r.ID) && !r.PodOwns(owner):
		return fmt.Sprintf("claim %s goes with an earlier pod %s, and is made anew when it is gone", claim.Name, owner.Name)
	case owner != nil && owner.UID != s.UID && !r.PodOwns(owner):
		return fmt.Sprintf("claim %s belongs to %s %s; delete the claim, or rename the claim template", claim.Name, owner.Kind, owner.Name)
	case labeled && other != s.Name && (!inUse || identity.Names(claim.Name, other)): // else a user has changed the label
		return fmt.Sprintf("claim %s belongs to the set %s; rename the claim template, or, if the data is this set's, give the claim the label %s=%s",
			claim.Name, other, v1beta1.SetLabel, s.Name)
	case !labeled && contradicts(s.Spec.Selector, claim.Labels) && !inUse:
		return fmt.Sprintf("claim %s has labels that the selector does not match, so it is another workload's; "+
			"rename the claim template, or give the claim the label %s=%s", claim.Name, v1beta1.SetLabel, s.Name)
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

// PodOwns reports whether an owner is the replica's own pod, to which the claim was handed over.
func (r *Replica) PodOwns(owner *metav1.OwnerReference) bool {
	return r.Pod != nil && owner.UID == r.Pod.UID
}
