// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
)

// CreateBudget creates the disruption budget of a set.
type CreateBudget struct {
	// Name is the name of the budget.
	Name string
	// Spec is the spec of the budget.
	Spec policyv1.PodDisruptionBudgetSpec
}

// UpdateBudget makes the disruption budget of a set what it should be.
type UpdateBudget struct {
	// Budget is the budget as observed; its UID and resource version become preconditions.
	Budget *policyv1.PodDisruptionBudget
	// Spec is the spec that it gets.
	Spec policyv1.PodDisruptionBudgetSpec
}

// DeleteBudget deletes a disruption budget that the set controls and no longer wants.
type DeleteBudget struct {
	// Budget is the budget as observed; its UID becomes a precondition.
	Budget *policyv1.PodDisruptionBudget
	// Reason is why the budget is not wanted.
	Reason string
}

func (CreateBudget) isAction() {}

func (UpdateBudget) isAction() {}

func (DeleteBudget) isAction() {}

// String returns the line of logs and golden files.
func (a CreateBudget) String() string {
	return fmt.Sprintf("create budget %s (minAvailable %s)", a.Name, a.Spec.MinAvailable)
}

// String returns the line of logs and golden files.
func (a UpdateBudget) String() string {
	return fmt.Sprintf("change budget %s (minAvailable %s)", a.Budget.Name, a.Spec.MinAvailable)
}

// String returns the line of logs and golden files.
func (a DeleteBudget) String() string {
	return fmt.Sprintf("delete budget %s (%s)", a.Budget.Name, a.Reason)
}
