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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
)

// keepClaims applies the actions on claims before those on pods. It returns the pods that cannot be deleted yet because a
// claim that goes with them could not be handed over.
func (w claimWriter) keepClaims(ctx context.Context, actions []action.Action) (staying map[types.UID]bool) {
	staying = map[types.UID]bool{}
	now := actions[:min(len(actions), MaxWrites)]
	outcomes := make([]outcome, len(actions))
	w.Run(w.set.Namespace, len(now), func(i int) { outcomes[i] = w.keepClaim(ctx, now[i]) })
	for i, out := range outcomes {
		out.stale = apierrors.IsConflict(out.err) // another client was faster, and the cache is about to show its change
		if i < len(now) {
			w.tried(actions[i], out)
		}
		if own, ok := actions[i].(action.OwnClaim); ok && own.Owner != nil && (out.err != nil || i >= len(now)) {
			staying[own.Owner.UID] = true
		}
		switch {
		case i >= len(now), out.stale:
		case out.block != nil: // the pod exists, so this blocks nothing else
			w.result.Claims.Fail(errors.New(out.block.Reason))
		case out.err != nil:
			w.result.Claims.Fail(out.err)
		default:
			w.result.Claims.Done++
			w.kept = append(w.kept, actions[i])
		}
	}
	return staying
}

// keepClaim applies one action on claims.
func (w claimWriter) keepClaim(ctx context.Context, a action.Action) outcome {
	switch a := a.(type) {
	case action.CreateClaims:
		revision, _ := w.revision(a.Revision)
		return w.ensureClaims(ctx, revision, action.Create{ID: a.ID, Surge: w.replica(a.ID).Surge})
	case action.OwnClaim:
		return outcome{err: w.own(ctx, a)}
	case action.ChangeClaim:
		return outcome{err: w.patchClaim(ctx, a.Claim, func(c *corev1.PersistentVolumeClaim) { ask(c, a) })}
	case action.DeleteClaim:
		return outcome{err: w.deleteClaim(ctx, a)}
	case action.Create, action.Delete, action.Preflight, action.Adopt, action.Release, action.Relabel, action.Unmark,
		action.CloseGate, action.OpenGate, action.UpdateInPlace, action.Resize, action.SetState,
		action.CreateBudget, action.UpdateBudget, action.DeleteBudget:
	}
	return outcome{}
}

// ask changes what a claim asks of its storage. An annotation notes the class, so that it can be taken off again.
func ask(c *corev1.PersistentVolumeClaim, a action.ChangeClaim) {
	if a.Size != nil {
		if c.Spec.Resources.Requests == nil {
			c.Spec.Resources.Requests = corev1.ResourceList{}
		}
		c.Spec.Resources.Requests[corev1.ResourceStorage] = *a.Size
	}
	switch {
	case a.Class == nil:
	case *a.Class == "":
		c.Spec.VolumeAttributesClassName = nil
		delete(c.Annotations, v1beta1.AttributesClassAnnotation)
	default:
		c.Spec.VolumeAttributesClassName = a.Class
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1beta1.AttributesClassAnnotation, *a.Class)
	}
}

// own labels a claim as the set's, and replaces the set and the identity's pod among its owners.
func (w claimWriter) own(ctx context.Context, a action.OwnClaim) error {
	r := w.replica(a.ID)
	return w.patchClaim(ctx, a.Claim, func(c *corev1.PersistentVolumeClaim) {
		c.OwnerReferences = slices.DeleteFunc(c.OwnerReferences, func(ref metav1.OwnerReference) bool {
			return ref.UID == w.set.UID || r.Pod != nil && ref.UID == r.Pod.UID
		})
		if a.Owner != nil {
			c.OwnerReferences = append(c.OwnerReferences, *a.Owner)
		}
		w.label(c, a.ID)
		if !r.Surge {
			delete(c.Labels, v1beta1.SurgeLabel)
		}
		delete(c.Labels, v1beta1.LeftLabel)
		if a.Left {
			c.Labels[v1beta1.LeftLabel] = "true"
		}
	})
}

// deleteClaim deletes a claim if it still is the one that was judged, and no pod mounts it. It asks the API server, because
// a manager that has just started may not see that pod in its cache, and deleting the claim would delete its data.
func (w claimWriter) deleteClaim(ctx context.Context, a action.DeleteClaim) error {
	name := w.snap.PodName(a.ID)
	switch err := w.Live.Get(ctx, client.ObjectKey{Namespace: w.set.Namespace, Name: name}, &corev1.Pod{}); {
	case err == nil:
		return apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), a.Claim.Name, fmt.Errorf("pod %s is there", name))
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get pod %s before claim %s is deleted: %w", name, a.Claim.Name, err)
	}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Name, claim.Namespace = a.Claim.Name, a.Claim.Namespace
	err := w.Client.Delete(ctx, claim, client.Preconditions{UID: &a.Claim.UID, ResourceVersion: &a.Claim.ResourceVersion})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("delete claim %s: %w", a.Claim.Name, err)
}
