// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/identity"
)

// Claim returns the replica's claim with this name; nil if it has none.
func (r *Replica) Claim(name string) *corev1.PersistentVolumeClaim {
	for _, claim := range r.Claims {
		if claim.Name == name {
			return claim
		}
	}
	return nil
}

// LostClaim describes a claim that a pod of a revision would mount, that does not exist and cannot be created. It also returns
// what to do about it; empty if there is no such claim.
func (s *Set) LostClaim(id, revision string) string {
	claim, lost := s.lackedClaim(id, revision, func(claim ClaimTemplate) bool { return claim.Template == nil })
	if !lost {
		return ""
	}
	return fmt.Sprintf("claim %s does not exist, and the claim template %s of revision %s is lost; "+
		"put it back into spec.volumeClaimTemplates, or create the claim", identity.ClaimName(s.Name, claim.Name, id), claim.Name, revision)
}

// Spares reports whether a refusal does not concern the pod of an identity at a revision: the API server refused a claim, and that pod needs
// no new one.
func (s *Set) Spares(refusal Refusal, id, revision string) bool {
	if !refusal.OfClaim {
		return false
	}
	_, lacks := s.lackedClaim(id, revision, func(ClaimTemplate) bool { return true })
	return !lacks
}

// lackedClaim returns the first of some claim templates of a revision from which an identity has no claim.
func (s *Set) lackedClaim(id, revision string, of func(ClaimTemplate) bool) (claim ClaimTemplate, lacks bool) {
	for _, claim := range s.Known[revision].Claims {
		name := identity.ClaimName(s.Name, claim.Name, id)
		exists := func(r Replica) bool { return r.ID == id && r.Claim(name) != nil }
		if of(claim) && !slices.ContainsFunc(s.Replicas, exists) {
			return claim, true
		}
	}
	return claim, false
}
