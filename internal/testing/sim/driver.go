// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// driver is how the storage driver answers: to growth, under the name "growth", and to each volume attributes class. It carries out
// what it has no answer to.
type driver map[string]string

// driverCommands returns the command about the storage driver: "driver growth fails", "driver gold infeasible", "driver gold works".
// Other answers to a class are pending, slow, which never ends, and ignores.
func driverCommands() []command {
	return []command{{"driver", 2, func(_ context.Context, w *World, args []string) error {
		w.note("driver " + args[0] + " " + args[1])
		if w.claims.driver == nil {
			w.claims.driver = driver{}
		}
		w.claims.driver[args[0]] = args[1]
		if args[0] == "all" {
			w.claims.driver = nil
		}
		for claim := range apiserver.Each[*corev1.PersistentVolumeClaim](w.Store) {
			w.claims.dirty = append(w.claims.dirty, apiserver.KeyOf(claim))
		}
		return nil
	}}}
}

// carryOut does for a claim what the driver does. It reports whether the status of the claim changed.
func (d driver) carryOut(claim *corev1.PersistentVolumeClaim) (changed bool) {
	before, isBound := claim.Status.DeepCopy(), claim.Status.Phase == corev1.ClaimBound
	done := claim.DeepCopy()
	var says []corev1.PersistentVolumeClaimCondition
	if size := before.Capacity[corev1.ResourceStorage]; isBound && d["growth"] == "fails" && size.Cmp(claim.Spec.Resources.Requests[corev1.ResourceStorage]) < 0 {
		done.Spec.Resources.Requests = before.Capacity
		says = append(says, said(corev1.PersistentVolumeClaimControllerResizeError, "the pool is full"))
	}
	apiserver.CarryOut(done)
	if answer := d[classOf(claim.Spec.VolumeAttributesClassName)]; isBound && classOf(before.CurrentVolumeAttributesClassName) != classOf(done.Status.CurrentVolumeAttributesClassName) {
		done.Status.CurrentVolumeAttributesClassName, done.Status.ModifyVolumeStatus = modifies(answer, before, &done.Status)
		if answer == "infeasible" {
			says = append(says, said(corev1.PersistentVolumeClaimVolumeModifyVolumeError, "no such volume type"))
		}
	}
	done.Status.Conditions = says
	claim.Status = done.Status
	return !apiequality.Semantic.DeepEqual(before, &claim.Status)
}

// modifies returns the volume attributes class that a claim has after an answer of the driver, and what the status says of it.
func modifies(answer string, before, done *corev1.PersistentVolumeClaimStatus) (*string, *corev1.ModifyVolumeStatus) {
	status, answers := map[string]corev1.PersistentVolumeClaimModifyVolumeStatus{
		"pending": corev1.PersistentVolumeClaimModifyVolumePending, "slow": corev1.PersistentVolumeClaimModifyVolumeInProgress,
		"infeasible": corev1.PersistentVolumeClaimModifyVolumeInfeasible,
	}[answer]
	switch {
	case answers:
		target := classOf(done.CurrentVolumeAttributesClassName)
		return before.CurrentVolumeAttributesClassName, &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: target, Status: status}
	case answer == "ignores":
		return before.CurrentVolumeAttributesClassName, nil
	default:
		return done.CurrentVolumeAttributesClassName, nil
	}
}

// classOf returns the name of a volume attributes class; empty if there is none.
func classOf(name *string) string {
	if name == nil {
		return ""
	}
	return *name
}

func said(of corev1.PersistentVolumeClaimConditionType, message string) corev1.PersistentVolumeClaimCondition {
	return corev1.PersistentVolumeClaimCondition{Type: of, Status: corev1.ConditionTrue, Message: message}
}
