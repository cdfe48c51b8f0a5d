// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan composes the planners.
//
// The rule: scale and update are planned from the same observation, and update knows what scale creates and deletes. While
// scale deletes pods, update leaves pods in service alone, so that availability is reduced for one reason at a time. A pod
// that is to be deleted counts as gone, even while a lifecycle hook still holds it. Claims are planned last, because what
// happens to them depends on what happens to their pods after the hooks. They are written first. The disruption budget depends on
// the spec alone, and waits for none of that.
package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/adoption"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan/disruption"
	"rollset.dev/rollset/internal/scale"
	"rollset.dev/rollset/internal/update"
)

// Next returns what to write now, and what is held. It leaves aside what the API server refused a moment ago; nothing else
// waits for that.
func Next(snap *snapshot.Set) action.Plan {
	p := ofPods(snap)
	p.Join(disruption.Plan(snap))
	p.Wake(snap.NodesSettleIn)
	return p
}

// ofPods plans all but the disruption budget.
func ofPods(snap *snapshot.Set) action.Plan {
	var before action.Plan
	for _, plan := range []func(*snapshot.Set) action.Plan{adoption.Own, adoption.Recognize} {
		whose := plan(snap)
		before.Join(leaveAside(snap, whose))
		changes := func(a action.Action) bool { return !asksAgain(snap, a) }
		if slices.ContainsFunc(before.Actions, changes) || slices.ContainsFunc(whose.Actions, func(a action.Action) bool { return unsettled(snap, a) }) {
			return before // ownership and revision of pods are settled before anything else is planned
		}
	}
	w := desired.Of(snap)
	hooks := lifecycle.New(snap)
	p := hooks.Apply(scale.Down(snap, w))
	var left time.Duration
	w.Rests, left = scale.Rests(snap, p)
	p.Wake(left)
	up := scale.Up(snap, w, p)
	update.Originate(snap, w, &up)
	p.Join(up)
	moves := update.Plan(snap, w, p)
	hooks.Keep(w, moves)
	p.Join(hooks.Apply(moves))
	p.Join(hooks.Settle())
	unmark(snap, &p)
	all := claims.Plan(snap, w, p)
	all.Join(p)
	all = leaveAside(snap, all)
	all.Join(before)
	return all
}

// unmark removes the mark of a pod that replaced one of the same name, once podsToDelete no longer lists that name. Listed
// again, the name means this pod. It removes the mark of surge from a pod that scaling up has made a member, once it is ready or goes back. A
// pod with another action waits.
func unmark(snap *snapshot.Set, p *action.Plan) {
	for r := range snap.Unsteady() {
		mark := action.Unmark{Pod: r.Pod}
		switch {
		case !r.Active():
			continue
		case r.Replaced && !snap.Lists(r.Pod.Name):
			mark.Label, mark.Reason = v1beta1.ReplacedLabel, "podsToDelete no longer names it"
		case r.MadeForSurge && (r.Ready || r.Revision != snap.Update.Name) && snap.Ordinal() && !snap.Condemned(r) && snap.Limits.MaxSurge > 0:
			mark.Label, mark.Reason = v1beta1.SurgeLabel, "its ordinal is in use"
		default:
			continue
		}
		changes := func(a action.Action) bool { return action.KeyOf(a).Object == string(r.Pod.UID) }
		if !slices.ContainsFunc(p.Actions, changes) {
			p.Add(mark)
		}
	}
}

// asksAgain reports whether an action is a preflight that failed before. The others do not wait for one that may never be answered.
func asksAgain(snap *snapshot.Set, a action.Action) bool {
	ask, ok := a.(action.Preflight)
	return ok && snap.Preflights[ask.Revision].Failed
}

// unsettled reports whether an action is paused because its result is unknown or it was refused.
func unsettled(snap *snapshot.Set, a action.Action) bool {
	k := action.KeyOf(a)
	refusal := snap.Refusal(k)
	return snap.LeavesAside(k) && (refusal.Unsettled || refusal.Overtaken)
}

// leaveAside removes from a plan the writes that the API server refused a moment ago, and those that are paused. A pod that
// takes a claim along waits with the claim.
func leaveAside(snap *snapshot.Set, p action.Plan) action.Plan {
	staying := map[types.UID]bool{}
	rests := func(a action.Action) bool {
		k := action.KeyOf(a)
		refusal := snap.Refusal(k)
		create, creates := a.(action.Create)
		switch {
		case refusal.Retry <= 0, creates && snap.Spares(refusal, create.ID, create.Revision):
			return false
		case refusal.Message == "":
			p.Wake(refusal.Retry)
		default:
			p.LeaveAside(snap, k, action.Subject(snap.Name, a))
		}
		if own, ok := a.(action.OwnClaim); ok && own.Owner != nil {
			staying[own.Owner.UID] = true
		}
		return true
	}
	if len(snap.Refusals) > 0 {
		p.Actions = slices.DeleteFunc(slices.Clone(p.Actions), rests)
		p.Actions = slices.DeleteFunc(p.Actions, func(a action.Action) bool {
			d, ok := a.(action.Delete)
			return ok && staying[d.Pod.UID]
		})
	}
	return p
}
