// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/internal/model/action"
)

// pace takes out of a plan the writes that the API server refused a moment ago. They are tried again after a while, or
// at once when the spec changes, but not at every event. A pod that is to take a claim along waits with the claim. Gates
// that somebody else turns all the time are turned back once in a while.
func (v *view) pace(p action.Plan) action.Plan {
	staying := map[types.UID]bool{}
	p.Actions = slices.DeleteFunc(slices.Clone(p.Actions), func(a action.Action) bool {
		if wait := v.memory.calm(a, v.now); wait > 0 {
			p.Wake(wait)
			return true
		}
		sort := v.memory.sort(a)
		if sort == nil {
			return false
		}
		wait := sort.wait(v.generation(), v.now)
		if !v.memory.namespaceGone { // else there is no other attempt worth waking up for
			p.Wake(wait)
		}
		if own, ok := a.(action.OwnClaim); ok && own.Owner != nil && wait > 0 {
			staying[own.Owner.UID] = true
		}
		return wait > 0
	})
	p.Actions = slices.DeleteFunc(p.Actions, func(a action.Action) bool {
		d, ok := a.(action.Delete)
		return ok && staying[d.Pod.UID]
	})
	return p
}

// retry is when to try again what the API server has just refused; zero if it refused nothing. No event tells that it
// would accept it now.
func (v *view) retry(wanted action.Plan) time.Duration {
	var next time.Duration
	for _, a := range wanted.Actions {
		if sort := v.memory.sort(a); sort != nil && !v.memory.namespaceGone {
			next = sooner(next, sort.wait(v.generation(), v.now))
		}
	}
	for name, answer := range v.memory.preflights {
		next = sooner(next, answer.again.wait(name, v.now))
	}
	for _, resize := range v.memory.resizes {
		next = sooner(next, resize.again.wait(resize.revision, v.now))
	}
	for id, obstacle := range v.memory.blocked {
		next = sooner(next, obstacle.again.wait(id, v.now))
	}
	return next
}

// sort is what is remembered of writes of an action's sort; nil for those that are paced elsewhere.
func (m *recollection) sort(a action.Action) *refusal {
	switch a.(type) {
	case action.Create:
		return &m.creates
	case action.Delete:
		return &m.deletes
	case action.Relabel:
		return &m.relabels
	case action.CloseGate, action.OpenGate, action.UpdateInPlace, action.Resize, action.SetState:
		return &m.updates
	case action.CreateClaims, action.OwnClaim, action.GrowClaim, action.DeleteClaim:
		return &m.claims
	case action.Preflight:
	}
	return nil
}

// generation tells one spec from the next.
func (v *view) generation() string { return strconv.FormatInt(v.set.Generation, 10) }

// remember notes what the next reconcile should know of this one.
func (r *Reconciler) remember(s step) {
	v, m, result := s.view, s.memory, s.result
	if len(result.Preflights) == 0 { // a plan that asks first may not say yet what is wanted
		m.forgetUnwanted(s.wanted)
	}
	m.creates.note(v.generation(), v.now, result.Creates)
	m.deletes.note(v.generation(), v.now, result.Deletes)
	m.relabels.note(v.generation(), v.now, result.Relabels)
	m.updates.note(v.generation(), v.now, result.Updates)
	m.claims.note(v.generation(), v.now, result.Claims)
	if result.Creates.Done+result.Creates.Failed > 0 {
		m.namespaceGone = result.NamespaceGone
	}
	if result.Deletes.Done > 0 && slices.ContainsFunc(s.plan.Actions, endsFinished) {
		m.finished.failed(s.observed.Update.Name, v.now)
	}
	for name, answer := range result.Preflights {
		m.noteAnswer(name, answer, v.now)
	}
	r.rememberBlocked(v, result.Blocked)
	m.noteResizes(s.observed, result.Infeasible)
	m.noteTurns(s.plan, v.now)
	m.forgetRevisions(v.revisions)
	r.Metrics.wrote(result)
}

// forgetUnwanted drops refusals of writes that nobody wants any more.
func (m *recollection) forgetUnwanted(wanted action.Plan) {
	due := map[*refusal]bool{}
	for _, a := range wanted.Actions {
		due[m.sort(a)] = true
	}
	for _, sort := range []*refusal{&m.creates, &m.deletes, &m.relabels, &m.updates, &m.claims} {
		if !due[sort] {
			*sort = refusal{}
		}
	}
}

func endsFinished(a action.Action) bool {
	d, ok := a.(action.Delete)
	return ok && d.Cause == action.Finished
}
