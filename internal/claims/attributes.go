// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
)

// modified returns the write by which a claim comes to ask for the volume attributes class of its template; nil if it does, or
// cannot.
func modified(_ *snapshot.Set, template, claim *corev1.PersistentVolumeClaim) *action.ChangeClaim {
	want := attributesOf(template)
	switch {
	case claim.Status.Phase != corev1.ClaimBound || hasAttributes(template, claim):
		return nil
	case want == "" && (!isGiven(claim) || applied(claim) != ""):
		return nil
	}
	return &action.ChangeClaim{Claim: claim, Class: &want}
}

// hasAttributes reports whether a claim asks for the volume attributes class of its template.
func hasAttributes(template, claim *corev1.PersistentVolumeClaim) bool {
	return attributesOf(template) == attributesOf(claim)
}

// isModifying reports whether the storage behind a claim does not have the volume attributes class that the claim asks for.
func isModifying(claim *corev1.PersistentVolumeClaim) bool {
	asked := attributesOf(claim)
	return claim.Status.Phase == corev1.ClaimBound && asked != "" && asked != applied(claim)
}

// attributesOf returns the volume attributes class that a claim asks for; empty if none.
func attributesOf(claim *corev1.PersistentVolumeClaim) string {
	if claim.Spec.VolumeAttributesClassName == nil {
		return ""
	}
	return *claim.Spec.VolumeAttributesClassName
}

// applied returns the volume attributes class that the storage behind a claim has; empty if none.
func applied(claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.CurrentVolumeAttributesClassName == nil {
		return ""
	}
	return *claim.Status.CurrentVolumeAttributesClassName
}

// isGiven reports whether the set gave the claim its volume attributes class. What users gave it stays if the template names none.
func isGiven(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[v1beta1.AttributesClassAnnotation] == attributesOf(claim)
}

// nextAttributes describes how the volume attributes class of a claim is about to change; empty if it is not.
func nextAttributes(template, claim *corev1.PersistentVolumeClaim) string {
	next := modified(nil, template, claim)
	switch {
	case next == nil:
		return ""
	case *next.Class == "":
		return fmt.Sprintf("the volume attributes class %s, which was not applied, is taken off", attributesOf(claim))
	default:
		return "it gets the volume attributes class " + *next.Class
	}
}

// otherAttributes describes how the volume attributes class of a claim differs from its template, if no write of the set changes
// that; empty if it does not.
func otherAttributes(template, claim *corev1.PersistentVolumeClaim) string {
	want, have := attributesOf(template), attributesOf(claim)
	switch {
	case modified(nil, template, claim) != nil, want == "" && (have == "" || !isGiven(claim)):
		return ""
	case want == "":
		return fmt.Sprintf("it has the volume attributes class %s and the template names none; "+
			"a class that was applied cannot be taken off, only new claims come without one", applied(claim))
	case want != have:
		return fmt.Sprintf("it cannot get the volume attributes class %s: it is not bound", want)
	case isModifying(claim):
		return underway(claim, have)
	default:
		return ""
	}
}

// underway describes how far the storage driver is with a volume attributes class, in its words.
func underway(claim *corev1.PersistentVolumeClaim, class string) string {
	status := claim.Status.ModifyVolumeStatus
	if status == nil || status.TargetVolumeAttributesClassName != class {
		return fmt.Sprintf("the storage driver has not answered to the volume attributes class %s; drivers that know no such classes never do", class)
	}
	words := ""
	if c := saysOf(claim, corev1.PersistentVolumeClaimVolumeModifyVolumeError, corev1.PersistentVolumeClaimVolumeModifyingVolume); c != nil && c.Message != "" {
		words = ": " + c.Message
	}
	switch status.Status {
	case corev1.PersistentVolumeClaimModifyVolumePending:
		return fmt.Sprintf("the volume attributes class %s is pending%s", class, cmp.Or(words, ": it may not exist"))
	case corev1.PersistentVolumeClaimModifyVolumeInfeasible:
		return fmt.Sprintf("the volume attributes class %s is infeasible%s; name the class before (%s), or another",
			class, words, cmp.Or(applied(claim), "none"))
	case corev1.PersistentVolumeClaimModifyVolumeInProgress:
	}
	return fmt.Sprintf("it is getting the volume attributes class %s%s", class, words)
}
