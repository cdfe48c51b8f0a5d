// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Status returns, for each claim template, how many claims of the pods that stay match it. It explains the first that does not; one that
// merely waits for its turn only if no other does not match.
func Status(snap *snapshot.Set) []v1beta1.VolumeClaimStatus {
	var all []v1beta1.VolumeClaimStatus
	for i := range snap.Spec.VolumeClaimTemplates {
		template := &snap.Spec.VolumeClaimTemplates[i]
		s, waiting := v1beta1.VolumeClaimStatus{Name: template.Name}, false
		for j := range snap.Replicas {
			r := &snap.Replicas[j]
			claim := r.Claim(identity.ClaimName(snap.Name, template.Name, r.ID))
			if claim == nil || !r.Active() || snap.Condemned(r) {
				continue
			}
			s.Claims++
			switch why, waits := mismatch(snap, template, claim); {
			case why == "":
				s.MatchingClaims++
			case s.Message == "", waiting && !waits:
				s.Message, waiting = claim.Name+": "+why, waits
			}
		}
		all = append(all, s)
	}
	return all
}

// mismatch describes how a claim differs from its template and what happens next; empty if it does not differ. waits is true if it
// changes when its pod's turn comes.
func mismatch(snap *snapshot.Set, template, claim *corev1.PersistentVolumeClaim) (why string, waits bool) {
	if why := cmp.Or(otherSize(snap, template, claim), otherAttributes(template, claim)); why != "" {
		return why, false
	}
	if next := cmp.Or(nextSize(snap, template, claim), nextAttributes(template, claim)); next != "" {
		return next + " when its pod's turn comes", true
	}
	switch {
	case otherClass(template, claim):
		why = "its storage class is not the template's; only new claims get that one"
	case !slices.Equal(template.Spec.AccessModes, claim.Spec.AccessModes):
		why = "its access modes are not the template's; only new claims get those"
	case template.Spec.VolumeMode != nil && !equal(template.Spec.VolumeMode, claim.Spec.VolumeMode):
		why = "its volume mode is not the template's; only new claims get that one"
	}
	return why, false
}

// nextSize describes how the storage of a claim is about to change; empty if it is not.
func nextSize(snap *snapshot.Set, template, claim *corev1.PersistentVolumeClaim) string {
	next := resized(snap, template, claim)
	have, capacity := requested(claim), claim.Status.Capacity[corev1.ResourceStorage]
	switch {
	case next == nil:
		return ""
	case next.Size.Cmp(have) > 0:
		return fmt.Sprintf("it grows from %s to %s", &have, next.Size)
	default:
		return fmt.Sprintf("its growth from %s to %s is taken back to %s", &capacity, &have, next.Size)
	}
}

// otherSize describes how the storage of a claim differs from its template, if no write of the set changes that; empty if it does not.
func otherSize(snap *snapshot.Set, template, claim *corev1.PersistentVolumeClaim) string {
	want, have := requested(template), requested(claim)
	capacity := claim.Status.Capacity[corev1.ResourceStorage]
	switch {
	case resized(snap, template, claim) != nil:
		return ""
	case want.Cmp(have) < 0 && want.Cmp(capacity) == 0:
		return fmt.Sprintf("it requests %s and has %s, and the API server takes a growth back only to more than that; "+
			"set the template to more than %s", &have, &capacity, &capacity)
	case want.Cmp(have) < 0:
		return fmt.Sprintf("it requests %s and the template %s; a claim cannot shrink, only new claims get the smaller size", &have, &want)
	case want.Cmp(have) > 0:
		return fmt.Sprintf("it cannot grow from %s to %s: %s", &have, &want, hindrance(snap, claim))
	case claim.Status.Phase != corev1.ClaimBound || capacity.Cmp(want) >= 0:
		return ""
	}
	if failed := saysOf(claim, corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError); failed != nil {
		return fmt.Sprintf("it does not grow from %s to %s: %s; a smaller size of more than %s takes the growth back", &capacity, &want, failed.Message, &capacity)
	}
	return fmt.Sprintf("it is growing from %s to %s", &capacity, &want)
}

// equal compares the values of two pointers. Nil equals only nil.
func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
