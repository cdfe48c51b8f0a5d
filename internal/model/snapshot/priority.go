// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rollset.dev/rollset/api/v1beta1"
)

// Priorities are the rules that order the updates of pods, with their selectors parsed.
type Priorities struct {
	// Weights add up to a pod's priority, between 0 and 3,200.
	Weights []Weight
	// Keys are label keys; the trailing number of the label's value orders pods of equal weight.
	Keys []string
	// Scatter lists the labels whose pods are spread over the update order.
	Scatter []v1beta1.UpdateScatterTerm
}

// Any reports whether some pods have priority over others.
func (p Priorities) Any() bool { return len(p.Weights) > 0 || len(p.Keys) > 0 }

// Weight is added to the priority of a pod that a selector matches.
type Weight struct {
	Value    int32
	Selector labels.Selector
}

// ResolvePriorities parses the priority and scatter strategies of a spec. The error names the selector that is
// malformed.
func ResolvePriorities(spec *v1beta1.RollSetSpec) (Priorities, error) {
	rolling := &spec.UpdateStrategy.RollingUpdate
	p := Priorities{Scatter: rolling.ScatterStrategy}
	if rolling.PriorityStrategy == nil {
		return p, nil
	}
	for i := range rolling.PriorityStrategy.WeightPriority {
		term := &rolling.PriorityStrategy.WeightPriority[i]
		selector, err := metav1.LabelSelectorAsSelector(&term.MatchSelector)
		if err != nil {
			return Priorities{}, fmt.Errorf("spec.updateStrategy.rollingUpdate.priorityStrategy.weightPriority[%d].matchSelector: %w", i, err)
		}
		p.Weights = append(p.Weights, Weight{Value: term.Weight, Selector: selector})
	}
	for _, term := range rolling.PriorityStrategy.OrderPriority {
		p.Keys = append(p.Keys, term.OrderedKey)
	}
	return p, nil
}
