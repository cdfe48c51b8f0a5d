// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
)

// BuildClaim returns the claim that a template gives to an identity.
func BuildClaim(set *v1beta1.RollSet, template *corev1.PersistentVolumeClaim, id string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:            identity.ClaimName(set.Name, template.Name, id),
			Namespace:       set.Namespace,
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			OwnerReferences: owners(set),
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

// claimLabels returns the labels that name the set and identity of a claim.
func claimLabels(set *v1beta1.RollSet, id string) map[string]string {
	labels := identityLabels(set, id)
	labels[v1beta1.SetLabel] = set.Name
	return labels
}

// owners returns the owners of a claim whose pod is not deleted.
func owners(set *v1beta1.RollSet) []metav1.OwnerReference {
	if claims.RetentionOf(&set.Spec).WhenDeleted == v1beta1.DeleteClaims {
		return []metav1.OwnerReference{claims.Owner(set.Name, set.UID)}
	}
	return nil
}

// claimWriter writes the claims of a set.
type claimWriter struct{ *writer }

// ensureClaims creates the missing claims of a pod that is, or will be, at a revision. Claims for surge belong to the surge
// pod.
func (w claimWriter) ensureClaims(ctx context.Context, revision snapshot.Revision, pod action.Create) outcome {
	if len(revision.Claims) == 0 {
		return outcome{}
	}
	r := w.replica(pod.ID)
	for _, of := range revision.Claims {
		name := identity.ClaimName(w.set.Name, of.Name, pod.ID)
		wanted := w.claimOf(of, pod.ID)
		if pod.Surge && wanted != nil {
			wanted.Labels[v1beta1.SurgeLabel] = "true"
			wanted.OwnerReferences = []metav1.OwnerReference{claims.Owner(w.set.Name, w.set.UID)}
		}
		var out outcome
		found := slices.IndexFunc(r.Claims, func(c *corev1.PersistentVolumeClaim) bool { return c.Name == name })
		if found >= 0 {
			out = w.reuse(ctx, r, r.Claims[found], wanted)
		} else {
			out = w.createClaim(ctx, r, name, wanted)
		}
		if out.block != nil || out.err != nil {
			return out
		}
	}
	return outcome{}
}

// claimOf returns the claim to create from a template; nil if the template is lost.
func (w claimWriter) claimOf(of snapshot.ClaimTemplate, id string) *corev1.PersistentVolumeClaim {
	if of.Template == nil {
		return nil
	}
	return BuildClaim(w.set, of.Template, id)
}

// createClaim creates a claim, or uses the one that exists.
func (w claimWriter) createClaim(ctx context.Context, r *snapshot.Replica, name string, claim *corev1.PersistentVolumeClaim) outcome {
	if claim == nil {
		return outcome{err: fmt.Errorf("claim %s is gone, and its template is lost", name)}
	}
	err := w.Client.Create(ctx, claim)
	if err == nil {
		w.Expectations.Wrote(w.set.UID, expectations.ClaimKind(), claim.ResourceVersion)
		return outcome{}
	}
	if !apierrors.IsAlreadyExists(err) {
		return outcome{err: fmt.Errorf("create claim %s: %w", name, err)}
	}
	found := &corev1.PersistentVolumeClaim{}
	if err := w.Live.Get(ctx, client.ObjectKey{Namespace: w.set.Namespace, Name: name}, found); err != nil {
		return outcome{err: fmt.Errorf("get claim %s, whose name is taken: %w", name, err)}
	}
	return w.use(r, found)
}

// reuse gives a replica a claim that the cache shows. A new pod is bound to its claim, and goes with it if the claim is
// being deleted. So reuse first asks the API server whether the claim still is as the cache shows it. If the claim is gone,
// reuse creates the wanted one.
func (w claimWriter) reuse(ctx context.Context, r *snapshot.Replica, seen, wanted *corev1.PersistentVolumeClaim) outcome {
	if r.Pod != nil || w.snap.ClaimObstacle(r, seen) != "" {
		return w.use(r, seen)
	}
	claim := &corev1.PersistentVolumeClaim{}
	switch err := w.Live.Get(ctx, client.ObjectKeyFromObject(seen), claim); {
	case apierrors.IsNotFound(err):
		return w.createClaim(ctx, r, seen.Name, wanted)
	case err != nil:
		return outcome{err: fmt.Errorf("get claim %s before a pod uses it: %w", seen.Name, err)}
	}
	return w.use(r, claim)
}

// use blocks the pod if an existing claim must not be used. The claim is labeled once the pod exists.
func (w claimWriter) use(r *snapshot.Replica, claim *corev1.PersistentVolumeClaim) outcome {
	if why := w.snap.ClaimObstacle(r, claim); why != "" {
		return outcome{block: &snapshot.Block{Claim: true, Reason: why}}
	}
	return outcome{}
}

// label labels a claim with its set and identity.
func (w claimWriter) label(claim *corev1.PersistentVolumeClaim, id string) {
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	maps.Copy(claim.Labels, claimLabels(w.set, id))
}

// patchClaim changes a claim if it still is as it was seen.
func (w claimWriter) patchClaim(ctx context.Context, seen *corev1.PersistentVolumeClaim, change func(*corev1.PersistentVolumeClaim)) error {
	claim := seen.DeepCopy()
	change(claim)
	patch := client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})
	data, err := patch.Data(claim)
	if err != nil {
		return fmt.Errorf("patch claim %s: %w", seen.Name, err)
	}
	if err := w.Client.Patch(ctx, claim, patch); err != nil {
		return fmt.Errorf("patch claim %s: %w", seen.Name, err)
	}
	w.Expectations.Wrote(w.set.UID, expectations.ClaimKind(), claim.ResourceVersion)
	if err := attempt.CheckPatch(data, seen, claim); err != nil {
		return fmt.Errorf("patch claim %s: %w", seen.Name, err)
	}
	return nil
}
