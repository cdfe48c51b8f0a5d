// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/observed"
)

// ClaimName is the name of the claim that an identity has of a template.
func ClaimName(set *v1alpha1.RollSet, template *corev1.PersistentVolumeClaim, id string) string {
	return template.Name + "-" + podName(set, id)
}

// BuildClaim makes the claim that an identity has of a template.
func BuildClaim(set *v1alpha1.RollSet, template *corev1.PersistentVolumeClaim, id string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:            ClaimName(set, template, id),
			Namespace:       set.Namespace,
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			OwnerReferences: ownersOfKept(set),
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	if set.Spec.Selector != nil {
		maps.Copy(claim.Labels, set.Spec.Selector.MatchLabels)
	}
	maps.Copy(claim.Labels, claimLabels(set, id))
	return claim
}

// claimLabels are the labels by which a claim shows whose it is.
func claimLabels(set *v1alpha1.RollSet, id string) map[string]string {
	labels := identityLabels(set, id)
	labels[v1alpha1.SetLabel] = set.Name
	return labels
}

// Obstacle says why the pod of an identity cannot use a claim that has the right name; empty if it can.
func Obstacle(set *v1alpha1.RollSet, id string, claim *corev1.PersistentVolumeClaim) string {
	if owner := metav1.GetControllerOfNoCopy(claim); owner != nil && owner.UID != set.UID {
		if owner.Kind == "Pod" && owner.Name == podName(set, id) {
			return fmt.Sprintf("claim %s is deleted together with the pod that was scaled away", claim.Name)
		}
		return fmt.Sprintf("claim %s belongs to %s %s; delete the claim, or rename the claim template", claim.Name, owner.Kind, owner.Name)
	}
	if other, ok := claim.Labels[v1alpha1.SetLabel]; ok && other != set.Name {
		return fmt.Sprintf("claim %s belongs to the set %s; delete the claim, or rename the claim template", claim.Name, other)
	}
	if claim.DeletionTimestamp != nil {
		return fmt.Sprintf("claim %s is being deleted and still in use", claim.Name)
	}
	return ""
}

// ensureClaims creates the claims that an identity lacks.
func (w *writer) ensureClaims(ctx context.Context, id string) outcome {
	templates := w.set.Spec.VolumeClaimTemplates
	if len(templates) == 0 {
		return outcome{}
	}
	existing := w.claimsOf(id)
	for i := range templates {
		wanted := BuildClaim(w.set, &templates[i], id)
		var out outcome
		if found, ok := existing[wanted.Name]; ok {
			out = w.use(ctx, id, found)
		} else {
			out = w.createClaim(ctx, id, wanted)
		}
		if out.block != nil || out.err != nil {
			return out
		}
	}
	return outcome{}
}

// claimsOf returns the claims that an identity has, by name.
func (w *writer) claimsOf(id string) map[string]*corev1.PersistentVolumeClaim {
	claims := map[string]*corev1.PersistentVolumeClaim{}
	if r := w.replicas[id]; r != nil {
		for _, c := range r.Claims {
			claims[c.Name] = c
		}
	}
	return claims
}

// createClaim creates a claim, or uses the one that is there already.
func (w *writer) createClaim(ctx context.Context, id string, claim *corev1.PersistentVolumeClaim) outcome {
	name := claim.Name
	err := w.Client.Create(ctx, claim)
	if err == nil {
		w.Expectations.Wrote(w.set.UID, ClaimKind(), claim.ResourceVersion)
		return outcome{}
	}
	if !apierrors.IsAlreadyExists(err) {
		return outcome{err: fmt.Errorf("create claim %s: %w", name, err)}
	}
	found := &corev1.PersistentVolumeClaim{}
	if err := w.Live.Get(ctx, client.ObjectKey{Namespace: w.set.Namespace, Name: name}, found); err != nil {
		return outcome{err: fmt.Errorf("get claim %s, whose name is taken: %w", name, err)}
	}
	return w.use(ctx, id, found)
}

// use makes a claim that exists one of the set's, if it may.
func (w *writer) use(ctx context.Context, id string, claim *corev1.PersistentVolumeClaim) outcome {
	if why := Obstacle(w.set, id, claim); why != "" {
		return outcome{block: &observed.Block{Claim: true, Reason: why}}
	}
	if claim.Labels[v1alpha1.SetLabel] == w.set.Name {
		return outcome{}
	}
	err := w.patchClaim(ctx, claim, func(c *corev1.PersistentVolumeClaim) {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		maps.Copy(c.Labels, claimLabels(w.set, id))
		c.OwnerReferences = append(c.OwnerReferences, ownersOfKept(w.set)...)
	})
	return outcome{err: err}
}

// patchClaim changes a claim, if it is still as it was seen.
func (w *writer) patchClaim(ctx context.Context, seen *corev1.PersistentVolumeClaim, change func(*corev1.PersistentVolumeClaim)) error {
	claim := seen.DeepCopy()
	change(claim)
	patch := client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})
	if err := w.Client.Patch(ctx, claim, patch); err != nil {
		return fmt.Errorf("patch claim %s: %w", seen.Name, err)
	}
	w.Expectations.Wrote(w.set.UID, ClaimKind(), claim.ResourceVersion)
	return nil
}
