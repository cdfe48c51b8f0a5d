// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan/observe"
	"rollset.dev/rollset/internal/podcontrol"
)

// claimRecheck is how often the cache is asked about a claim that is in the way and carries no label of the set, so that
// no event of it leads here.
const claimRecheck = 30 * time.Second

// blocked returns the identities that were found taken when a pod was last created, for as long as the cache shows why, or
// until it is time to try again. Those that have a pod are forgotten.
func (r *Reconciler) blocked(ctx context.Context, v *view, o *snapshot.Set) map[string]snapshot.Block {
	if len(v.memory.blocked) == 0 {
		return nil
	}
	for i := range o.Replicas {
		replica := &o.Replicas[i]
		if _, taken := v.memory.blocked[replica.ID]; taken && replica.Pod != nil {
			v.forgetBlocked(r, replica.ID)
		}
	}
	blocked := map[string]snapshot.Block{}
	for id, remembered := range v.memory.blocked {
		if b, ok := r.stillBlocked(ctx, v, o, id); ok {
			blocked[id] = b
			continue
		}
		// The cache may not show yet what the API server showed.
		if wait := v.wait(creating(id)); wait > 0 {
			blocked[id] = snapshot.Block{Claim: remembered.Claim, Reason: remembered.Reason, Retry: wait}
			continue
		}
		v.forgetBlocked(r, id)
	}
	return blocked
}

// forgetBlocked forgets that an identity was found taken.
func (v *view) forgetBlocked(r *Reconciler, id string) {
	delete(v.memory.blocked, id)
	r.router.StopAwaiting(podKey(v, id))
}

// stillBlocked asks the cache whether the name of an identity, or of one of its claims, is still taken.
func (r *Reconciler) stillBlocked(ctx context.Context, v *view, o *snapshot.Set, id string) (snapshot.Block, bool) {
	pod := &corev1.Pod{}
	if err := r.Client.Get(ctx, podKey(v, id), pod); err == nil && !metav1.IsControlledBy(pod, v.Set) {
		return snapshot.Block{Reason: podcontrol.Stranger(pod)}, true // its deletion leads here
	}
	_, ordinal := observe.Identify(v.Set, o.PodName(id))
	replica := &snapshot.Replica{ID: id, Ordinal: ordinal}
	for _, name := range claims.Wanted(o, desired.Of(o), replica) {
		claim := &corev1.PersistentVolumeClaim{}
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: v.Set.Namespace, Name: name}, claim); err != nil {
			continue
		}
		if why := claims.Obstacle(o, replica, claim); why != "" {
			return snapshot.Block{Claim: true, Reason: why, Retry: claimRecheck}, true
		}
	}
	return snapshot.Block{}, false
}

// seeStrangers notes of which identities with nothing but claims a pod that is not the set's has the name. It matters only
// where such claims are deleted: else there may be many.
func (r *Reconciler) seeStrangers(ctx context.Context, v *view, o *snapshot.Set) {
	if o.Ordinal() {
		return
	}
	for i := range o.Replicas {
		if replica := &o.Replicas[i]; replica.Pod == nil && claims.GoesWhenLeft(o, replica) {
			err := r.Client.Get(ctx, podKey(v, replica.ID), &corev1.Pod{}, client.UnsafeDisableDeepCopy)
			replica.NameTaken = !apierrors.IsNotFound(err)
		}
	}
}

// rememberBlocked notes which identities were found taken.
func (r *Reconciler) rememberBlocked(v *view, found map[string]snapshot.Block) {
	for id, b := range found {
		v.memory.blocked[id] = b
		r.router.Await(podKey(v, id), client.ObjectKeyFromObject(v.Set))
	}
}

func podKey(v *view, id string) types.NamespacedName {
	return types.NamespacedName{Namespace: v.Set.Namespace, Name: v.Set.Name + "-" + id}
}
