// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"rollset.dev/rollset/internal/simulator/actors"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// storage binds claims, and resizes and modifies their volumes as its driver answers.
type storage struct {
	actors.Claims

	// answers are those of the storage driver: to growth, under the name "growth", and to each volume attributes class. It carries out
	// what it has no answer to.
	answers map[string]string
}

func newStorage(store *apiserver.Store) *storage {
	s := &storage{answers: map[string]string{}}
	s.Claims = actors.Claims{Store: store, Driver: s.answer}
	return s
}

// driverCommands returns the command about the storage driver: "driver growth fails", "driver gold infeasible", "driver gold works".
// Other answers to a class are pending, slow, which never ends, and ignores.
func driverCommands() []command {
	return []command{{"driver", 2, func(_ context.Context, w *World, args []string) error {
		w.note("driver " + args[0] + " " + args[1])
		w.storage.answers[args[0]] = args[1]
		if args[0] == "all" {
			clear(w.storage.answers)
		}
		for _, claim := range slices.SortedFunc(apiserver.Each[*corev1.PersistentVolumeClaim](w.Store), byName) {
			w.storage.Add(apiserver.KeyOf(claim))
		}
		return nil
	}}}
}

// answer takes back what the driver does not carry out for a claim.
func (s *storage) answer(before *corev1.PersistentVolumeClaimStatus, claim *corev1.PersistentVolumeClaim) {
	if before.Phase != corev1.ClaimBound {
		return
	}
	status := &claim.Status
	if s.answers["growth"] == "fails" && !apiequality.Semantic.DeepEqual(before.Capacity, status.Capacity) {
		status.Capacity = before.Capacity
		status.Conditions = append(status.Conditions, said(corev1.PersistentVolumeClaimControllerResizeError, "the pool is full"))
	}
	answer := s.answers[classOf(status.CurrentVolumeAttributesClassName)]
	if answer == "" || classOf(before.CurrentVolumeAttributesClassName) == classOf(status.CurrentVolumeAttributesClassName) {
		return
	}
	status.CurrentVolumeAttributesClassName, status.ModifyVolumeStatus = modifies(answer, before, status)
	if answer == "infeasible" {
		status.Conditions = append(status.Conditions, said(corev1.PersistentVolumeClaimVolumeModifyVolumeError, "no such volume type"))
	}
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
func classOf(name *string) string { return *cmp.Or(name, new("")) }

func said(of corev1.PersistentVolumeClaimConditionType, message string) corev1.PersistentVolumeClaimCondition {
	return corev1.PersistentVolumeClaimCondition{Type: of, Status: corev1.ConditionTrue, Message: message}
}
