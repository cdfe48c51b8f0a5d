// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// keepsBudget checks that a manager makes and changes a disruption budget only for a set that wants one, with the right
// number, and while it knows of no other budget for the same pods. It deletes one only if one of that does not hold.
func keepsBudget(v *verdict) string {
	if v.Key.Kind != apiserver.Budgets || v.set == nil {
		return ""
	}
	var known []*policyv1.PodDisruptionBudget
	for o := range v.view.Cache(apiserver.Budgets) {
		known = append(known, apiserver.MustBe[*policyv1.PodDisruptionBudget](o))
	}
	wanted := v.world.WantsBudget(v.set, known)
	switch {
	case v.Verb == apiserver.Delete && wanted && v.Key.Name == v.set.Name:
		return "the budget is wanted"
	case v.Verb == apiserver.Delete:
		return ""
	case !wanted:
		return "no budget is wanted"
	default:
		return WrongBudget(v.set, apiserver.MustBe[*policyv1.PodDisruptionBudget](v.New))
	}
}

// WantsBudget reports whether a set wants a budget of its own beside the budgets that there are.
func (c *Cluster) WantsBudget(set *v1beta1.RollSet, budgets []*policyv1.PodDisruptionBudget) bool {
	if set.Spec.Disruption == nil || set.Spec.Disruption.PodDisruptionBudget != v1beta1.AutoBudget {
		return false
	}
	current := c.TemplateOf(set.Status.CurrentRevision)
	for _, b := range budgets {
		if OwnerOf(b) == set.UID {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if b.Name == set.Name || err != nil || selector.Matches(labels.Set(set.Spec.Template.Labels)) ||
			current != nil && selector.Matches(labels.Set(current.Labels)) {
			return false
		}
	}
	return true
}

// WrongBudget returns what is wrong with the budget of a set; empty if nothing is.
func WrongBudget(set *v1beta1.RollSet, b *policyv1.PodDisruptionBudget) string {
	l := limitsOf(&set.Spec)
	want := max(0, l.Replicas-l.maxUnavailable)
	switch {
	case b.Name != set.Name:
		return "it has another name than the set"
	case OwnerOf(b) != set.UID:
		return "the set does not control it"
	case !equality.Semantic.DeepEqual(b.Spec.Selector, set.Spec.Selector):
		return fmt.Sprintf("it selects %v", b.Spec.Selector)
	case b.Spec.MaxUnavailable != nil, b.Spec.MinAvailable == nil, b.Spec.MinAvailable.IntValue() != want:
		return fmt.Sprintf("minAvailable is %v, maxUnavailable %v, and %d pods are to stay available", b.Spec.MinAvailable, b.Spec.MaxUnavailable, want)
	default:
		return ""
	}
}
