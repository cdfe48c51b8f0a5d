// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan composes the sub-controllers.
//
// The rule: scale and update are planned on the same observation, update in the knowledge of what scale creates. While
// scale takes pods away update leaves pods in service alone, so that availability is given up for one reason at a time: what
// is on its way out counts as gone, also where a lifecycle hook still holds it. What becomes of claims follows from what
// becomes of their pods after the hooks, and is written first.
package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/internal/adoption"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/scale"
	"rollset.dev/rollset/internal/update"
)

// Next is what to write now, and what waits for what. What the API server refused a moment ago is left aside, and nothing
// else waits for it.
func Next(o *snapshot.Set) action.Plan {
	before := action.Plan{EveryHold: o.EveryHold}
	for _, plan := range []func(*snapshot.Set) action.Plan{adoption.Own, adoption.Recognize} {
		whose := plan(o)
		before.Join(leaveAside(o, whose))
		if !before.Empty() || slices.ContainsFunc(whose.Actions, func(a action.Action) bool { return unsettled(o, a) }) {
			return before // whose and what a pod is comes before what becomes of it
		}
	}
	w := desired.Of(o)
	hooks := lifecycle.New(o)
	scaling := scale.Plan(o, w)
	p := hooks.Apply(scaling)
	moves := update.Plan(o, w, scaling)
	hooks.Keep(w, scaling, moves)
	p.Join(hooks.Apply(moves))
	p.Join(hooks.Settle())
	unmark(o, &p)
	all := claims.Plan(o, w, p)
	all.Join(p)
	all = leaveAside(o, all)
	all.Join(before)
	return all
}

// unmark lets a name in podsToDelete mean a pod again that came in the place of one of the same name. A pod to which something
// else is done waits.
func unmark(o *snapshot.Set, p *action.Plan) {
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !r.Replaced || !r.Live() || o.Lists(r.Pod.Name) {
			continue
		}
		changes := func(a action.Action) bool { return action.KeyOf(a).Object == string(r.Pod.UID) }
		if !slices.ContainsFunc(p.Actions, changes) {
			p.Add(action.Unmark{Pod: r.Pod})
		}
	}
}

// unsettled reports whether an action rests of which it is not known yet whether it was carried out, or is refused.
func unsettled(o *snapshot.Set, a action.Action) bool {
	k := action.KeyOf(a)
	refusal := o.Refusal(k)
	return o.LeavesAside(k) && (refusal.Unsettled || refusal.Overtaken)
}

// leaveAside takes out of a plan the writes that the API server refused a moment ago, and those that rest. A pod that is to
// take a claim along waits with the claim.
func leaveAside(o *snapshot.Set, p action.Plan) action.Plan {
	staying := map[types.UID]bool{}
	rests := func(a action.Action) bool {
		k := action.KeyOf(a)
		refusal := o.Refusal(k)
		switch {
		case refusal.Retry <= 0:
			return false
		case refusal.Message == "":
			p.Wake(refusal.Retry)
		default:
			o.LeaveAside(k, action.Subject(o.Name, a), &p)
		}
		if own, ok := a.(action.OwnClaim); ok && own.Owner != nil {
			staying[own.Owner.UID] = true
		}
		return true
	}
	if len(o.Refusals) > 0 {
		p.Actions = slices.DeleteFunc(slices.Clone(p.Actions), rests)
		p.Actions = slices.DeleteFunc(p.Actions, func(a action.Action) bool {
			d, ok := a.(action.Delete)
			return ok && staying[d.Pod.UID]
		})
	}
	return p
}
