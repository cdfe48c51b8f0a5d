// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/rank"
	"rollset.dev/rollset/internal/model/snapshot"
)

// grow requests more storage where templates ask for it, in the order of an update, and for no more pods at a time than an
// update may disturb.
func grow(o *snapshot.Set, p *action.Plan) {
	if len(o.Spec.VolumeClaimTemplates) == 0 || o.Paused() {
		return
	}
	changing := map[string]bool{}
	for _, a := range p.Actions {
		if own, ok := a.(action.OwnClaim); ok {
			changing[own.ID] = true
		}
	}
	free := o.Limits.AtOnce()
	var due []*snapshot.Replica
	for _, r := range turns(o) {
		switch {
		case isGrowing(r):
			free--
		case len(growable(o, r)) > 0 && !changing[r.ID]: // one write at a time: the second would be refused
			due = append(due, r)
		}
	}
	for _, r := range due {
		if free <= 0 {
			return
		}
		if growNow(o, r, p) { // a claim that is left aside does not use up a turn
			free--
		}
	}
}

// growNow requests more storage for a replica. It reports false if the API server refused all of it a moment ago.
func growNow(o *snapshot.Set, r *snapshot.Replica, p *action.Plan) (asks bool) {
	for _, g := range growable(o, r) {
		p.Add(g)
		asks = asks || !o.LeavesAside(action.KeyOf(g))
	}
	return asks
}

// turns returns the replicas whose claims may grow now, in the order of an update: those at the update revision that no
// partition holds back.
func turns(o *snapshot.Set) []*snapshot.Replica {
	var active []*snapshot.Replica
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Active() {
			active = append(active, r)
		}
	}
	if o.Ordinal() {
		slices.SortFunc(active, rank.HighestFirst)
	} else {
		rank.SortByLoss(o, active)
	}
	active = active[:max(0, len(active)-o.Partition())]
	return slices.DeleteFunc(active, func(r *snapshot.Replica) bool { return r.Revision != o.Update.Name })
}

// growable returns the claims of a replica that are smaller than their template and can grow.
func growable(o *snapshot.Set, r *snapshot.Replica) []action.ExpandClaim {
	var actions []action.ExpandClaim
	for i := range o.Spec.VolumeClaimTemplates {
		template := &o.Spec.VolumeClaimTemplates[i]
		claim := r.Claim(identity.ClaimName(o.Name, template.Name, r.ID))
		if claim == nil || Obstacle(o, r, claim) != "" {
			continue
		}
		if size := requested(template); size.Cmp(requested(claim)) > 0 && hindrance(o, claim) == "" {
			actions = append(actions, action.ExpandClaim{Claim: claim, Size: size})
		}
	}
	return actions
}

// hindrance returns why a claim cannot grow; empty if it can.
func hindrance(o *snapshot.Set, claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.Phase != corev1.ClaimBound {
		return "it is not bound"
	}
	name, _ := ClassOf(claim)
	class, exists := o.Classes[name]
	switch {
	case name == "":
		return "it has no storage class"
	case !exists:
		return fmt.Sprintf("its storage class %s does not exist", name)
	case !class.Expandable:
		return fmt.Sprintf("its storage class %s does not allow volume expansion", name)
	default:
		return ""
	}
}

// Unbound returns the claim that keeps a pod from being scheduled, and why it is not bound; empty if no claim can be the
// cause.
func Unbound(o *snapshot.Set, r *snapshot.Replica) string {
	for _, claim := range r.Claims {
		if claim.Status.Phase == corev1.ClaimBound || !mounts(r.Pod, claim.Name) {
			continue
		}
		name, _ := ClassOf(claim)
		switch class, exists := o.Classes[name]; {
		case name == "":
			return fmt.Sprintf("claim %s is not bound, and it has no storage class", claim.Name)
		case !exists:
			return fmt.Sprintf("claim %s is not bound: its storage class %s does not exist", claim.Name, name)
		case class.Immediate:
			return fmt.Sprintf("claim %s is not bound", claim.Name)
		}
	}
	return ""
}

// ClassOf returns the name of the storage class of a claim, and whether the claim says which. The annotation is older than the
// field, and counts before it, as it does for the controllers that provision volumes.
func ClassOf(claim *corev1.PersistentVolumeClaim) (name string, says bool) {
	if name, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name, true
	}
	if claim.Spec.StorageClassName == nil {
		return "", false
	}
	return *claim.Spec.StorageClassName, true
}

// otherClass reports whether a claim has another storage class than its template asks for.
func otherClass(template, claim *corev1.PersistentVolumeClaim) bool {
	want, asks := ClassOf(template)
	have, says := ClassOf(claim)
	return asks && (!says || have != want)
}

// isGrowing reports whether the storage behind a claim of a replica is still being expanded. A file system that is resized
// only when the pod restarts is not waited for.
func isGrowing(r *snapshot.Replica) bool {
	return slices.ContainsFunc(r.Claims, func(claim *corev1.PersistentVolumeClaim) bool {
		size := claim.Status.Capacity[corev1.ResourceStorage]
		if claim.Status.Phase != corev1.ClaimBound || size.Cmp(requested(claim)) >= 0 {
			return false
		}
		return !slices.ContainsFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue
		})
	})
}

// requested returns the storage that a claim requests.
func requested(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// Status returns, for each claim template, how many claims of the set's pods match it.
func Status(o *snapshot.Set) []v1alpha1.VolumeClaimStatus {
	var all []v1alpha1.VolumeClaimStatus
	for i := range o.Spec.VolumeClaimTemplates {
		template := &o.Spec.VolumeClaimTemplates[i]
		s := v1alpha1.VolumeClaimStatus{Name: template.Name}
		for j := range o.Replicas {
			r := &o.Replicas[j]
			claim := r.Claim(identity.ClaimName(o.Name, template.Name, r.ID))
			if claim == nil || !r.Active() {
				continue
			}
			s.Claims++
			switch why := mismatch(o, template, claim); {
			case why == "":
				s.MatchingClaims++
			case s.Message == "":
				s.Message = claim.Name + ": " + why
			}
		}
		all = append(all, s)
	}
	return all
}

// mismatch describes how a claim differs from its template and what happens next; empty if it does not differ.
func mismatch(o *snapshot.Set, template, claim *corev1.PersistentVolumeClaim) string {
	want, have := requested(template), requested(claim)
	capacity := claim.Status.Capacity[corev1.ResourceStorage]
	switch {
	case want.Cmp(have) < 0:
		return fmt.Sprintf("it requests %s and the template %s; a claim cannot shrink, only new claims get the smaller size", &have, &want)
	case want.Cmp(have) > 0:
		if why := hindrance(o, claim); why != "" {
			return fmt.Sprintf("it cannot grow from %s to %s: %s", &have, &want, why)
		}
		return fmt.Sprintf("it grows from %s to %s when its pod's turn comes", &have, &want)
	case claim.Status.Phase == corev1.ClaimBound && capacity.Cmp(want) < 0:
		return fmt.Sprintf("it is growing from %s to %s", &capacity, &want)
	case otherClass(template, claim):
		return "its storage class is not the template's; only new claims get that one"
	case !slices.Equal(template.Spec.AccessModes, claim.Spec.AccessModes):
		return "its access modes are not the template's; only new claims get those"
	case template.Spec.VolumeMode != nil && !equal(template.Spec.VolumeMode, claim.Spec.VolumeMode):
		return "its volume mode is not the template's; only new claims get that one"
	default:
		return ""
	}
}

// equal compares the values of two pointers. Nil equals only nil.
func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
