// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan/disruption"
)

// install says how to give the manager the rights that it lacks.
const install = "; install the manager's component disruption, which has the rights"

// finding reports whether one thing that spec.disruption asks for is in force.
type finding struct {
	// reason is why it is not in force; empty if it is.
	reason, message string
}

// disruption returns the condition DisruptionReady; none if spec.disruption asks for nothing, and all that came of it is gone.
// The last condition stays until the rights of the manager are known.
func (f conditions) disruption() (v verdict, message string) {
	if before := find(f.previous.Conditions, v1beta1.ConditionDisruptionReady); f.unknown() {
		if before == nil {
			return v, ""
		}
		return verdict{before.Status, before.Reason}, before.Message
	}
	var all []finding
	if f.snap.Spec.ReplacesOnDrain() {
		all = append(all, f.drains())
	}
	if budget, asked := f.budget(); asked {
		all = append(all, budget)
	}
	var messages []string
	for _, is := range all {
		if messages = append(messages, is.message); is.reason != "" && v.reason == "" {
			v = verdict{metav1.ConditionFalse, is.reason}
		}
	}
	switch {
	case len(all) == 0:
		return v, ""
	case f.in.Invalid != "":
		return verdict{metav1.ConditionUnknown, v1beta1.ReasonInvalidSpec}, f.in.Invalid
	case v.reason == "":
		v = verdict{metav1.ConditionTrue, v1beta1.ReasonInForce}
	}
	return v, strings.Join(messages, "; ")
}

// unknown reports whether the rights that spec.disruption needs are not known yet.
func (f conditions) unknown() bool {
	is := func(a snapshot.Access) bool { return !a.Served && a.Denied == "" }
	return f.snap.Spec.ReplacesOnDrain() && is(f.snap.NodeAccess) || f.asksBudgets() && is(f.snap.Budgets.Access)
}

// asksBudgets reports whether the set wants a disruption budget of its own, or may have had one.
func (f conditions) asksBudgets() bool {
	return f.snap.Spec.WantsBudget() || find(f.previous.Conditions, v1beta1.ConditionDisruptionReady) != nil
}

// drains returns what has come of onDrain.
func (f conditions) drains() finding {
	if denied := f.snap.NodeAccess.Denied; denied != "" {
		return finding{v1beta1.ReasonMissingRights, "onDrain does nothing: " + denied + install}
	}
	return finding{message: "pods of nodes that leave are replaced"}
}

// budget returns the finding about podDisruptionBudget; false if none is wanted and no budget is left.
func (f conditions) budget() (is finding, asked bool) {
	wanted := f.snap.Spec.WantsBudget()
	if denied := f.snap.Budgets.Denied; denied != "" {
		return finding{v1beta1.ReasonMissingRights, "podDisruptionBudget does nothing: " + denied + install}, wanted
	}
	s := disruption.Of(f.snap)
	if !wanted && len(s.Surplus) == 0 {
		return is, false
	}
	refused, why := disruption.Refused(f.snap)
	switch {
	case refused != nil:
		is = finding{refusalReason(refused), why}
	case len(s.Surplus) > 0 && s.Foreign == nil:
		is = finding{v1beta1.ReasonBudgetPending, fmt.Sprintf("PodDisruptionBudget %s is to be deleted", s.Surplus[0].Name)}
	case s.Foreign != nil:
		is = finding{v1beta1.ReasonForeignBudget, fmt.Sprintf("the set has no PodDisruptionBudget of its own, because %s selects its pods, "+
			"and two of them refuse every eviction; delete that one, or set podDisruptionBudget to None", s.Foreign.Name)}
	case s.Taken != nil:
		is = finding{v1beta1.ReasonNameConflict, fmt.Sprintf("the set has no PodDisruptionBudget of its own, because another one is named %s; "+
			"delete or rename that one", s.Taken.Name)}
	case s.Own == nil || s.Own.DeletionTimestamp != nil:
		is = finding{v1beta1.ReasonBudgetPending, fmt.Sprintf("PodDisruptionBudget %s is not there yet", f.snap.Name)}
	default:
		is.message = fmt.Sprintf("PodDisruptionBudget %s keeps at least %s of the pods available", s.Own.Name, s.Own.Spec.MinAvailable)
	}
	return is, true
}

func refusalReason(a action.Action) string {
	switch action.KeyOf(a).Verb {
	case attempt.CreatingBudget:
		return v1beta1.ReasonFailedCreate
	case attempt.DeletingBudget:
		return v1beta1.ReasonFailedDelete
	default:
		return v1beta1.ReasonFailedUpdate
	}
}
