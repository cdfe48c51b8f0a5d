// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package disruption plans the PodDisruptionBudget that a set may have of its own.
//
// The rule: the budget has the name of the set, selects what the set selects, and keeps replicas − maxUnavailable pods
// available, as the set itself does. Two budgets for one pod refuse every eviction, so the set has none while another one
// selects its pods. Only budgets that the set controls are written. Broken pods may always be evicted, because the set
// replaces them without regard to its own budget too.
package disruption

import (
	"fmt"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
)

// State holds the budgets of a namespace that concern a set.
type State struct {
	// Own is the budget of the set; nil if there is none.
	Own *policyv1.PodDisruptionBudget
	// Surplus are budgets that the set controls and does not want.
	Surplus []*policyv1.PodDisruptionBudget
	// Foreign is another budget that selects pods of the set, and Taken one that has its name and does not belong to it;
	// nil if there is none.
	Foreign, Taken *policyv1.PodDisruptionBudget
}

// Of returns the state of a set's budgets.
func Of(snap *snapshot.Set) State {
	var s State
	var own []*policyv1.PodDisruptionBudget
	for _, b := range snap.Budgets.All {
		switch controller := metav1.GetControllerOfNoCopy(b); {
		case controller != nil && controller.UID == snap.UID:
			own = append(own, b)
		case b.Name == snap.Name:
			s.Taken = b
		}
	}
	s.Foreign = foreign(snap, len(own) > 0)
	for _, b := range own {
		if b.Name == snap.Name && s.Foreign == nil && snap.Spec.WantsBudget() {
			s.Own = b
		} else {
			s.Surplus = append(s.Surplus, b)
		}
	}
	return s
}

// foreign returns the first budget by name that selects pods of the set and that the set does not control. Of two sets that
// select the same pods and both have a budget, the first by name keeps its own.
func foreign(snap *snapshot.Set, hasOwn bool) (first *policyv1.PodDisruptionBudget) {
	for _, b := range snap.Budgets.All {
		controller := metav1.GetControllerOfNoCopy(b)
		ours := controller != nil && controller.UID == snap.UID
		yields := hasOwn && controller != nil && isSet(controller) && controller.Name > snap.Name
		if !ours && !yields && selects(b, snap) && (first == nil || b.Name < first.Name) {
			first = b
		}
	}
	return first
}

// isSet reports whether a reference refers to a set.
func isSet(owner *metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return group == v1beta1.GroupVersion.Group
}

// selects reports whether a budget selects pods of the set, as the template now says, or as the current revision does.
func selects(b *policyv1.PodDisruptionBudget, snap *snapshot.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return false
	}
	if t := snap.Current.Template; t != nil && selector.Matches(labels.Set(t.Labels)) {
		return true
	}
	return selector.Matches(labels.Set(snap.Spec.Template.Labels))
}

// Plan returns what to write. Without access to budgets it is empty. No pod waits for a write that the API server refused a
// moment ago, so it is no hold.
func Plan(snap *snapshot.Set) (p action.Plan) {
	if !snap.Budgets.Served {
		return p
	}
	for _, a := range due(snap) {
		if refusal := snap.Refusal(action.KeyOf(a)); refusal.Retry > 0 {
			p.Wake(refusal.Retry)
		} else {
			p.Add(a)
		}
	}
	return p
}

// Refused returns the write that is due and that the API server refused when it was last tried; nil if there is none.
func Refused(snap *snapshot.Set) (a action.Action, message string) {
	for _, a := range due(snap) {
		if refusal := snap.Refusal(action.KeyOf(a)); refusal.Message != "" && !refusal.Overtaken {
			return a, refusal.Message
		}
	}
	return nil, ""
}

// due returns the writes that make the budgets of the set what they should be.
func due(snap *snapshot.Set) (all []action.Action) {
	s := Of(snap)
	for _, b := range s.Surplus {
		if b.DeletionTimestamp == nil {
			all = append(all, action.DeleteBudget{Budget: b, Reason: s.unwanted(snap, b)})
		}
	}
	want := wanted(snap)
	switch {
	case !snap.Spec.WantsBudget(), s.Foreign != nil, s.Taken != nil:
	case s.Own == nil:
		all = append(all, action.CreateBudget{Name: snap.Name, Spec: want})
	case s.Own.DeletionTimestamp == nil && !Same(&s.Own.Spec, &want):
		all = append(all, action.UpdateBudget{Budget: s.Own, Spec: want})
	}
	return all
}

// unwanted returns why a budget that the set controls is not wanted.
func (s *State) unwanted(snap *snapshot.Set, b *policyv1.PodDisruptionBudget) string {
	switch {
	case !snap.Spec.WantsBudget():
		return "podDisruptionBudget is None"
	case s.Foreign != nil:
		return s.Foreign.Name + " selects the same pods"
	default:
		return fmt.Sprintf("the set's budget is %s, not %s", snap.Name, b.Name)
	}
}

// wanted returns the spec of the set's budget.
func wanted(snap *snapshot.Set) policyv1.PodDisruptionBudgetSpec {
	return policyv1.PodDisruptionBudgetSpec{
		Selector:                   snap.Spec.Selector,
		MinAvailable:               new(intstr.FromInt(snap.Limits.MinAvailable())),
		UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
	}
}

// Same reports whether two specs agree in all that a set decides about them.
func Same(a, b *policyv1.PodDisruptionBudgetSpec) bool {
	return equality.Semantic.DeepEqual(a.Selector, b.Selector) &&
		equality.Semantic.DeepEqual(a.MinAvailable, b.MinAvailable) &&
		equality.Semantic.DeepEqual(a.MaxUnavailable, b.MaxUnavailable) &&
		equality.Semantic.DeepEqual(a.UnhealthyPodEvictionPolicy, b.UnhealthyPodEvictionPolicy)
}

// Set makes a spec agree with another in all that a set decides about it.
func Set(spec, want *policyv1.PodDisruptionBudgetSpec) {
	spec.Selector, spec.MinAvailable, spec.MaxUnavailable = want.Selector, want.MinAvailable, want.MaxUnavailable
	spec.UnhealthyPodEvictionPolicy = want.UnhealthyPodEvictionPolicy
}
