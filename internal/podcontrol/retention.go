// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/action"
	"rollset.dev/rollset/internal/observed"
)

// Claims are never deleted here. What the retention policy wants deleted gets an owner, and the garbage collector
// deletes it with that owner: the set for whenDeleted, the pod that is scaled away for whenScaled.

// retention returns the policy of a set, its defaults resolved.
func retention(set *v1alpha1.RollSet) v1alpha1.PersistentVolumeClaimRetentionPolicy {
	fallback := v1alpha1.DeleteClaims
	if set.Spec.PodIdentity == v1alpha1.OrdinalIdentity {
		fallback = v1alpha1.RetainClaims
	}
	policy := v1alpha1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: fallback, WhenScaled: fallback}
	if p := set.Spec.PersistentVolumeClaimRetentionPolicy; p != nil {
		if p.WhenDeleted != "" {
			policy.WhenDeleted = p.WhenDeleted
		}
		if p.WhenScaled != "" {
			policy.WhenScaled = p.WhenScaled
		}
	}
	return policy
}

// ownersOfKept are the owners, as far as they are our business, of a claim whose identity stays.
func ownersOfKept(set *v1alpha1.RollSet) []metav1.OwnerReference {
	if retention(set).WhenDeleted == v1alpha1.DeleteClaims {
		return []metav1.OwnerReference{OwnerReference(set)}
	}
	return nil
}

// handOverClaims gives the claims of a pod that is scaled away to the pod, if the policy says that they go with it.
func (w *writer) handOverClaims(ctx context.Context, a action.Delete) error {
	if a.Cause != action.ScaleDown || retention(w.set).WhenScaled != v1alpha1.DeleteClaims {
		return nil
	}
	r := w.byPod[a.Pod.UID]
	if r == nil {
		return nil
	}
	owner := *metav1.NewControllerRef(a.Pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	for _, claim := range r.Claims {
		if Obstacle(w.set, r.ID, claim) != "" {
			continue
		}
		if err := w.setOwners(ctx, claim, []metav1.OwnerReference{owner}); err != nil {
			return fmt.Errorf("delete pod %s: %w", a.Pod.Name, err)
		}
	}
	return nil
}

// writeClaims brings the owners of the claims that stay in line with the policy, and gives pending pods the claims that
// they have lost.
func (w *writer) writeClaims(ctx context.Context, deletes []action.Delete) {
	if len(w.replicas) == 0 {
		return
	}
	leaving := make(map[types.UID]bool, len(deletes))
	for _, d := range deletes {
		leaving[d.Pod.UID] = true
	}
	var due []*observed.Replica
	for i := range w.observation.Replicas {
		r := &w.observation.Replicas[i]
		if _, blocked := w.observation.Blocked[r.ID]; blocked || r.Pod != nil && leaving[r.Pod.UID] {
			continue
		}
		if len(w.misowned(r)) > 0 || w.lacksClaims(r) {
			due = append(due, r)
		}
	}
	due = due[:min(len(due), MaxCreates)]
	outcomes := make([]outcome, len(due))
	w.Run(len(due), func(i int) { outcomes[i] = w.writeClaimsOf(ctx, due[i]) })
	for i, out := range outcomes {
		w.note(action.Create{ID: due[i].ID}, out)
	}
}

func (w *writer) writeClaimsOf(ctx context.Context, r *observed.Replica) outcome {
	for _, claim := range w.misowned(r) {
		if err := w.setOwners(ctx, claim, ownersOfKept(w.set)); err != nil {
			return outcome{err: err}
		}
	}
	if w.lacksClaims(r) {
		return w.ensureClaims(ctx, r.ID)
	}
	return outcome{}
}

// misowned returns the claims of a replica that stay and do not have the owners that the policy wants.
func (w *writer) misowned(r *observed.Replica) []*corev1.PersistentVolumeClaim {
	if r.Terminating && retention(w.set).WhenScaled == v1alpha1.DeleteClaims {
		return nil // its claims may have been handed over to it
	}
	wanted := ownersOfKept(w.set)
	var claims []*corev1.PersistentVolumeClaim
	for _, claim := range r.Claims {
		owner := metav1.GetControllerOfNoCopy(claim)
		ours := owner == nil || owner.UID == w.set.UID || r.Pod != nil && owner.UID == r.Pod.UID
		right := owner == nil && len(wanted) == 0 || owner != nil && len(wanted) > 0 && owner.UID == w.set.UID
		if ours && !right && claim.DeletionTimestamp == nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// lacksClaims says whether a pod waits for claims that were deleted under it.
func (w *writer) lacksClaims(r *observed.Replica) bool {
	if !r.Live() || r.Pod.Status.Phase != corev1.PodPending {
		return false
	}
	existing := w.claimsOf(r.ID)
	for i := range w.set.Spec.VolumeClaimTemplates {
		name := ClaimName(w.set, &w.set.Spec.VolumeClaimTemplates[i], r.ID)
		if _, ok := existing[name]; !ok && mounts(r.Pod, name) {
			return true
		}
	}
	return false
}

// mounts says whether a pod has a claim of that name among its volumes.
func mounts(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// setOwners replaces the controlling owner of a claim and leaves references of others alone. A claim that is gone needs
// no owner.
func (w *writer) setOwners(ctx context.Context, claim *corev1.PersistentVolumeClaim, owners []metav1.OwnerReference) error {
	err := w.patchClaim(ctx, claim, func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = slices.DeleteFunc(c.OwnerReferences, func(r metav1.OwnerReference) bool {
			return r.Controller != nil && *r.Controller
		})
		c.OwnerReferences = append(c.OwnerReferences, owners...)
	})
	if apierrors.IsNotFound(errors.Unwrap(err)) {
		return nil
	}
	return err
}
