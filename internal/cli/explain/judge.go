// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan"
	"rollset.dev/rollset/internal/plan/observe"
)

// judge returns what a controller that has just started would write next for a set, and every write that it would hold
// back. It asks accepts whether the API server accepts a pod of a revision.
func judge(o snapshot.Objects, accepts func(snapshot.Revision) snapshot.Preflight) (action.Plan, error) {
	spec, err := observe.Resolve(&o.Set.Spec)
	if err != nil {
		return action.Plan{}, err
	}
	if o.Selector, err = metav1.LabelSelectorAsSelector(o.Set.Spec.Selector); err != nil {
		return action.Plan{}, fmt.Errorf("spec.selector: %w", err)
	}
	memory := &observe.Memory{}
	replicas := memory.Join(&o)
	found, err := revision.Resolve(memory.RevisionInput(&o, replicas))
	if err != nil {
		return action.Plan{}, err
	}
	snap := observe.Snapshot(observe.Input{
		Objects: &o, Numbers: spec, Replicas: replicas, Resolution: found,
		Sighting:   func(types.UID) inplace.Sighting { return inplace.Sighting{} }, // no event was watched
		Preflights: map[string]snapshot.Preflight{},
	}, memory)
	snap.EveryHold = true
	for {
		p := plan.Next(snap)
		asked, ok := unanswered(p, snap)
		if !ok {
			return p, nil
		}
		r, known := snap.Known[asked]
		if !known { // then it has no template
			r = snapshot.Revision{Name: asked}
		}
		snap.Preflights[asked] = accepts(r)
	}
}

// unanswered returns a revision that a plan asks the API server about and that it was not asked about yet.
func unanswered(p action.Plan, snap *snapshot.Set) (name string, ok bool) {
	for _, a := range p.Actions {
		if ask, isAsk := a.(action.Preflight); isAsk {
			if _, answered := snap.Preflights[ask.Revision]; !answered {
				return ask.Revision, true
			}
		}
	}
	return "", false
}
