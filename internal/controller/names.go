// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/watch"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan/observe"
	"rollset.dev/rollset/internal/podcontrol"
)

// claimRecheck is how often the cache is read for a claim that blocks an identity and has no label of the set, because its events
// do not lead to a reconcile.
const claimRecheck = 30 * time.Second

// takenNames tracks the identities whose names or claims belong to objects that the set does not own.
type takenNames struct {
	*view

	cache  client.Reader
	pods   informer.Pods
	router *watch.Router
}

// blocked returns the identities that were found taken when a pod was last created, for as long as the cache shows why, or
// until it is time to try again. Those that have a pod are forgotten.
func (n takenNames) blocked(ctx context.Context, snap *snapshot.Set) map[string]snapshot.Block {
	if len(n.memory.taken) == 0 {
		return nil
	}
	for i := range snap.Replicas {
		replica := &snap.Replicas[i]
		if _, taken := n.memory.taken[replica.ID]; taken && replica.Pod != nil {
			n.forget(replica.ID)
		}
	}
	blocked := map[string]snapshot.Block{}
	for id, remembered := range n.memory.taken {
		if b, ok := n.stillTaken(ctx, snap, id); ok {
			blocked[id] = b
			continue
		}
		// The cache may not show yet what the API server showed.
		if wait := n.writes.Wait(attempt.Key{Verb: attempt.Creating, Object: id}); wait > 0 {
			blocked[id] = snapshot.Block{Claim: remembered.Claim, Reason: remembered.Reason, Retry: wait}
			continue
		}
		n.forget(id)
	}
	return blocked
}

// forget forgets that an identity was found taken.
func (n takenNames) forget(id string) {
	delete(n.memory.taken, id)
	n.router.StopAwaiting(n.pod(id))
}

// stillTaken asks the cache whether the name of an identity, or of one of its claims, is still taken.
func (n takenNames) stillTaken(ctx context.Context, snap *snapshot.Set, id string) (snapshot.Block, bool) {
	if pod, err := n.pods.Named(ctx, n.pod(id)); err == nil && pod != nil && !metav1.IsControlledBy(pod, n.Set) {
		return snapshot.Block{Reason: podcontrol.TakenBy(pod)}, true // its deletion leads here
	}
	_, ordinal := observe.Identify(n.Set, snap.PodName(id))
	replica := &snapshot.Replica{Content: snapshot.Content{Identity: snapshot.Identity{ID: id, Ordinal: ordinal}}}
	for _, name := range claims.Wanted(snap, desired.Of(snap), replica) {
		claim := &corev1.PersistentVolumeClaim{}
		if err := n.cache.Get(ctx, client.ObjectKey{Namespace: n.Set.Namespace, Name: name}, claim); err != nil {
			continue
		}
		if why := snap.ClaimObstacle(replica, claim); why != "" {
			return snapshot.Block{Claim: true, Reason: why, Retry: claimRecheck}, true
		}
	}
	return snapshot.Block{}, false
}

// mark marks claim-only identities whose pod name is held by a pod that the set does not own. It matters only where such claims
// are deleted; elsewhere there may be many.
func (n takenNames) mark(ctx context.Context, snap *snapshot.Set) {
	for replica := range snap.Unsteady() {
		if replica.Pod == nil && replica.Surge {
			pod, err := n.pods.Named(ctx, n.pod(replica.ID))
			replica.NameTaken = pod != nil || err != nil
		}
	}
}

// remember notes which identities were found taken.
func (n takenNames) remember(found map[string]snapshot.Block) {
	for id, b := range found {
		n.memory.taken[id] = b
		n.router.Await(n.pod(id), client.ObjectKeyFromObject(n.Set))
	}
}

// pod is the name of an identity's pod.
func (n takenNames) pod(id string) types.NamespacedName {
	return types.NamespacedName{Namespace: n.Set.Namespace, Name: identity.PodName(n.Set.Name, id)}
}
