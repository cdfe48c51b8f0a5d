// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// ours splits off the pods that the selector no longer matches. The set does not wait until they are released.
func (o *observer) ours() (replicas []snapshot.Replica, leaving []*corev1.Pod) {
	leaves := func(r *snapshot.Replica) bool { return r.Unselected && !r.Terminating }
	stay := 0
	for i := range o.Replicas {
		if !leaves(&o.Replicas[i]) {
			stay++
		}
	}
	if stay == len(o.Replicas) {
		return o.Replicas, nil
	}
	replicas = make([]snapshot.Replica, 0, stay)
	for i := range o.Replicas {
		if r := &o.Replicas[i]; leaves(r) {
			leaving = append(leaving, r.Pod)
		} else {
			replicas = append(replicas, *r)
		}
	}
	return replicas, leaving
}

// nameless returns the identities that cannot get a pod because another pod has the name and the set can neither adopt nor
// release it.
func (o *observer) nameless() map[string]snapshot.Block {
	blocked := map[string]snapshot.Block{}
	for _, pod := range o.snap.Leaving {
		id, _ := Identify(o.Set, pod.Name)
		blocked[id] = snapshot.Block{Reason: "the name is taken by a pod that the selector does not match and that is not released yet"}
	}
	for _, pod := range o.snap.Orphans {
		if o.snap.LeavesAside(attempt.OfPod(attempt.Adopting, pod)) {
			id, _ := Identify(o.Set, pod.Name)
			blocked[id] = snapshot.Block{Reason: "the name is taken by a pod that the set may not adopt; delete it"}
		}
	}
	return blocked
}

// blockedByClaims returns the identities without a pod whose claims cannot be used. Events of these claims lead to the set.
func blockedByClaims(snap *snapshot.Set) map[string]snapshot.Block {
	blocked := map[string]snapshot.Block{}
	var wanted *desired.State // computed only if needed, because it costs as much as the set has pods
	for r := range snap.Unsteady() {
		if r.Pod != nil {
			continue
		}
		for _, claim := range r.Claims {
			why := snap.ClaimObstacle(r, claim)
			if why == "" {
				continue
			}
			if wanted == nil {
				wanted = desired.Of(snap)
			}
			if slices.Contains(claims.Wanted(snap, wanted, r), claim.Name) {
				blocked[r.ID] = snapshot.Block{Claim: true, Reason: why}
			}
		}
	}
	return blocked
}
