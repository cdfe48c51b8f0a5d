// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/plan/disruption"
)

// budgetWords are the words about a write of a budget, for events.
type budgetWords struct{ done, failed, verb string }

// budgetWriter writes the disruption budget of a set.
type budgetWriter struct{ *writer }

// keepBudget applies an action on a disruption budget.
func (w budgetWriter) keepBudget(ctx context.Context, a action.Action) {
	var out outcome
	words := budgetWords{SuccessfulUpdate, FailedUpdate, "Update"}
	switch a := a.(type) {
	case action.CreateBudget:
		words = budgetWords{SuccessfulCreate, FailedCreate, "Create"}
		out = w.createBudget(ctx, a)
	case action.UpdateBudget:
		out = w.updateBudget(ctx, a)
	case action.DeleteBudget:
		words = budgetWords{SuccessfulDelete, FailedDelete, "Delete"}
		out = w.deleteBudget(ctx, a)
	case action.Create, action.Delete, action.Preflight, action.Adopt, action.Release, action.Relabel, action.Unmark,
		action.CloseGate, action.OpenGate, action.UpdateInPlace, action.Resize, action.SetState,
		action.CreateClaims, action.OwnClaim, action.ChangeClaim, action.DeleteClaim:
	}
	w.tried(a, out)
	switch {
	case out.stale:
	case out.err != nil:
		w.event(corev1.EventTypeWarning, words.failed, words.verb, out.err.Error())
	case out.done:
		logr.FromContextOrDiscard(ctx).Info("wrote the disruption budget", "budget", w.set.Name, "change", a.String())
		w.event(corev1.EventTypeNormal, words.done, words.verb, "Disruption budget: "+a.String())
	}
}

// createBudget creates the budget of the set. If its name is taken, the cache is about to show by whom.
func (w budgetWriter) createBudget(ctx context.Context, a action.CreateBudget) outcome {
	budget := &policyv1.PodDisruptionBudget{}
	budget.Name, budget.Namespace = a.Name, w.set.Namespace
	budget.OwnerReferences = []metav1.OwnerReference{claims.Owner(w.set.Name, w.set.UID)}
	a.Spec.DeepCopyInto(&budget.Spec)
	err := w.Client.Create(ctx, budget)
	switch {
	case apierrors.IsAlreadyExists(err):
		return outcome{}
	case err != nil:
		return outcome{err: fmt.Errorf("create PodDisruptionBudget %s: %w", a.Name, err)}
	}
	w.Expectations.Wrote(w.set.UID, expectations.BudgetKind(), budget.ResourceVersion)
	return w.budgetOutcome("create", budget, a.Spec)
}

// budgetOutcome compares a budget that the API server answered with the wanted one.
func (w budgetWriter) budgetOutcome(verb string, answer *policyv1.PodDisruptionBudget, want policyv1.PodDisruptionBudgetSpec) outcome {
	if disruption.Same(&answer.Spec, &want) {
		return outcome{done: true}
	}
	return outcome{err: fmt.Errorf("%s PodDisruptionBudget %s: %w", verb, answer.Name, &attempt.AlteredError{What: "changed or kept its spec"})}
}

// updateBudget changes what the set decides about its budget, if the budget still is as it was seen.
func (w budgetWriter) updateBudget(ctx context.Context, a action.UpdateBudget) outcome {
	budget := a.Budget.DeepCopy()
	disruption.Set(&budget.Spec, a.Spec.DeepCopy())
	err := w.Client.Patch(ctx, budget, client.MergeFromWithOptions(a.Budget, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsNotFound(err): // the cache is about to show it
		return outcome{}
	case err != nil:
		return outcome{stale: apierrors.IsConflict(err), err: fmt.Errorf("patch PodDisruptionBudget %s: %w", a.Budget.Name, err)}
	}
	w.Expectations.Wrote(w.set.UID, expectations.BudgetKind(), budget.ResourceVersion)
	return w.budgetOutcome("patch", budget, a.Spec)
}

// deleteBudget deletes a budget if it still is the one that was judged.
func (w budgetWriter) deleteBudget(ctx context.Context, a action.DeleteBudget) outcome {
	budget := &policyv1.PodDisruptionBudget{}
	budget.Name, budget.Namespace = a.Budget.Name, a.Budget.Namespace
	err := w.Client.Delete(ctx, budget, client.Preconditions{UID: &a.Budget.UID, ResourceVersion: &a.Budget.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return outcome{}
	case err != nil:
		return outcome{stale: apierrors.IsConflict(err), err: fmt.Errorf("delete PodDisruptionBudget %s: %w", a.Budget.Name, err)}
	}
	return outcome{done: true}
}
