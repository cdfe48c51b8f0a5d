// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// mover makes the moves of one plan. For each it decides whether the pod is recreated or changed in place, and whether the
// budget allows that now. Its methods are these decisions, which all share the budget that is left.
type mover struct {
	snap   *snapshot.Set
	budget budget
	plan   *action.Plan
	// domains are the failure domains of the set; nil if it has none.
	domains *domains
	// differences holds the differences between revisions that were computed.
	differences map[transition]*difference
	// moving holds the pods that are being moved.
	moving map[*corev1.Pod]bool
	// resizing counts, for each revision, the pods that get other resources while they serve.
	resizing map[string]int
	// refusedClaims holds, for each revision, whose claims the API server refuses, and why; nil until that is asked for.
	refusedClaims map[string]string
}

// transition is a move from one revision to another.
type transition struct{ from, to string }

// difference is the change from one revision to another, or the reason why it cannot be made in place.
type difference struct {
	change inplace.Change
	cannot string
}

// method is how a pod is moved.
type method struct {
	// change is the change in place; nil if the pod is recreated.
	change *inplace.Change
	// cannot is why a pod is recreated although the policy prefers a change in place.
	cannot string
}

// recreates reports whether the pod is deleted.
func (h method) recreates() bool { return h.change == nil }

// silent reports whether the containers notice nothing.
func (h method) silent() bool { return h.change != nil && h.change.MetadataOnly() }

// gentle reports whether containers get other resources without being restarted.
func (h method) gentle() bool {
	return h.change != nil && !h.change.MetadataOnly() && !h.change.NeedsRestart()
}

func newMover(snap *snapshot.Set, b budget, p *action.Plan) *mover {
	v := &mover{snap: snap, budget: b, plan: p, differences: map[transition]*difference{}, moving: map[*corev1.Pod]bool{}, resizing: map[string]int{}}
	for r := range snap.Unsteady() {
		if v.takesTurn(r) {
			v.resizing[r.Revision]++
		}
	}
	return v
}

// resizeTurn is for how long a resize that the node defers, or cannot make, keeps other pods from being resized.
const resizeTurn = time.Minute

// takesTurn reports whether a pod is one of those that are resized now. One that cannot get its resources for now is one of
// them for a minute, so that a mistake shows before all pods have it. A quota that is full keeps all pods from being resized.
func (v *mover) takesTurn(r *snapshot.Replica) bool {
	if !r.Active() || r.Progress.Resize == "" {
		return false
	}
	if !r.Progress.Postponed || v.snap.Refusals[attempt.Any(attempt.Resizing)].Definite {
		return true
	}
	v.plan.Wake(resizeTurn - r.Waited)
	return r.Waited < resizeTurn
}

// move makes a move or its next step, or adds the hold that blocks it. It returns false if the pod cannot move for a reason of its
// own.
func (v *mover) move(m desired.Candidate) bool {
	if (retreat{&v.budget}).goesBack(m) {
		m.To = v.snap.Current.Name
	}
	how := v.method(m)
	if v.cannot(m, how) {
		return false
	}
	if v.held(m, how) {
		return true
	}
	var next action.Action
	var err error
	if !how.recreates() {
		next, err = inPlaceSteps{v}.step(m, how)
	}
	if err != nil {
		how = method{cannot: err.Error()}
		if v.cannot(m, how) {
			return false
		}
		if v.held(m, how) {
			return true
		}
	}
	v.spend(m, how)
	v.moving[m.Replica.Pod] = true
	switch {
	case how.recreates():
		v.plan.Add(deletion(m, cmp.Or(how.cannot, v.foreign(m))))
	case next != nil:
		v.plan.Add(next)
	}
	return !m.Replica.Overdue || !begun(m.Replica, how)
}

// method decides how a pod is moved.
func (v *mover) method(m desired.Candidate) method {
	if m.Named || v.snap.Strategy() != v1beta1.RollingUpdateStrategy || v.snap.Spec.UpdatePolicy() == v1beta1.RecreatePod {
		return method{}
	}
	d := v.difference(transition{from: m.Replica.Revision, to: m.To})
	if d.cannot != "" {
		return method{cannot: d.cannot}
	}
	if reader := d.change.ReadBy(m.Replica.Pod); reader != "" { // injected: the template has no such container
		return method{cannot: reader}
	}
	return method{change: &d.change}
}

// difference returns what differs between the two revisions of a transition. Most moves share one.
func (v *mover) difference(t transition) *difference {
	d, known := v.differences[t]
	if !known {
		d = &difference{}
		d.change, d.cannot = v.snap.Change(t.from, t.to)
		v.differences[t] = d
	}
	return d
}

// cannot holds a pod that cannot move at all: in place, because of its policy; or because its successor could not come.
func (v *mover) cannot(m desired.Candidate, how method) bool {
	if how.cannot != "" && v.snap.Spec.UpdatePolicy() == v1beta1.InPlaceOnlyPod {
		v.plan.Hold(action.HeldByPolicy, m.Replica.Pod.Name, "podUpdatePolicy InPlaceOnly: %s", how.cannot)
		return true
	}
	if why := v.lost(m, how); why != "" {
		v.plan.Hold(action.HeldByClaim, m.Replica.Pod.Name, "%s", why)
		return true
	}
	return v.nowhere(m) || v.unsized(m, how)
}

// held holds a move that cannot be made now.
func (v *mover) held(m desired.Candidate, how method) bool {
	why := v.refuses(m, how)
	if why == "" {
		return false
	}
	v.plan.HoldBecause(why, func() (string, string) { return m.Replica.Pod.Name, v.explain(why, m, how) })
	if m.Named && m.Replica.Leaving != "" && (why == action.HeldByGuard || why == action.HeldByBudget) {
		v.plan.HoldBecause(action.HeldByDrain, func() (string, string) {
			return m.Replica.Pod.Name, m.Replica.Leaving + "; " + v.explain(why, m, how)
		})
	}
	v.plan.Wake(v.budget.yieldsAfter)
	if why == action.HeldByDomain {
		domainWords{v.domains}.rest(m, v.plan)
	}
	return true
}

// lost returns why a pod that would be deleted could not come back with its claims; empty if it could.
func (v *mover) lost(m desired.Candidate, how method) string {
	if !how.recreates() {
		return ""
	}
	if why := v.snap.LostClaim(m.Replica.ID, m.To); why != "" {
		return why
	}
	needs := ""
	for _, template := range v.snap.Known[m.To].Claims {
		name := identity.ClaimName(v.snap.Name, template.Name, m.Replica.ID)
		switch claim := m.Replica.Claim(name); {
		case claim == nil && !m.Replica.OutOfService() && podstate.Mounts(m.Replica.Pod, name):
			return fmt.Sprintf("it mounts claim %s, which has the label of another set; give it the label %s=%s, or delete the pod", name, v1beta1.SetLabel, v.snap.Name)
		case claim == nil, claim.DeletionTimestamp != nil: // one that is being deleted is made anew
			needs = name
			continue
		}
		if why := v.snap.ClaimObstacle(m.Replica, m.Replica.Claim(name)); why != "" {
			return why
		}
	}
	if needs == "" {
		return ""
	}
	return v.claimless(m.To, needs)
}

// claimless returns why a claim that a successor needs would not be made: a place at its revision waits for one that the API server refuses.
// Where that accepts the pod at another revision, pods would come and go in turn.
func (v *mover) claimless(revision, needs string) string {
	if v.refusedClaims == nil {
		v.refusedClaims = refusedClaims(v.snap, v.budget.state.Places)
	}
	if whose := v.refusedClaims[revision]; whose != "" {
		return fmt.Sprintf("revision %s needs claim %s, and the API server refuses those of %s", revision, needs, whose)
	}
	return ""
}

// refusedClaims returns for each revision a place whose claim was refused when last tried, and why.
func refusedClaims(snap *snapshot.Set, places []desired.Place) map[string]string {
	refused := map[string]string{}
	for _, place := range places {
		refusal := snap.Refusal(attempt.Key{Verb: attempt.Creating, Object: place.ID})
		if refused[place.Revision] == "" && refusal.OfClaim && refusal.Message != "" {
			refused[place.Revision] = snap.PodName(place.ID) + ": " + refusal.Message
		}
	}
	return refused
}

// unsized holds a pod that would get other resources while a quota refuses them to all pods.
func (v *mover) unsized(m desired.Candidate, how method) bool {
	k := attempt.Any(attempt.Resizing)
	if how.recreates() || len(how.change.Resources) == 0 || !v.snap.LeavesAside(k) {
		return false
	}
	v.plan.LeaveAside(v.snap, k, m.Replica.Pod.Name)
	return true
}

// nowhere holds a pod whose node leaves, if its successor could not run anywhere.
func (v *mover) nowhere(m desired.Candidate) bool {
	r := m.Replica
	if r.Specified || r.Leaving == "" || !v.snap.Nowhere {
		return false
	}
	v.plan.Hold(action.HeldByDrain, r.Pod.Name, "%s, and no node is ready that stays", r.Leaving)
	return true
}

// refuses returns what keeps a move from being made now; empty if nothing does. A change that the containers do not notice
// costs nothing. A change that they notice without a restart costs no availability, but it may fail, so at most
// maxUnavailable pods make one at a time. A move that has begun continues, because its budget is already spent. Only changes
// that the containers notice wait for a failure domain.
func (v *mover) refuses(m desired.Candidate, how method) action.HoldKind {
	switch {
	case how.silent(), begun(m.Replica, how):
		return ""
	case v.domains.refuses(m):
		return action.HeldByDomain
	case how.gentle() && !m.Replica.OutOfService():
		if v.budget.unavailable[m.To] >= v.budget.limit(m) {
			return action.HeldByGuard
		}
		if v.resizing[m.To] >= v.snap.Limits.AtOnce() {
			return action.HeldByBudget
		}
		return ""
	default:
		return v.budget.refuses(m)
	}
}

// begun reports whether a lifecycle hook is preparing a pod for this very move, and nothing else has been done yet. A gate
// does not show what it was closed for.
func begun(r *snapshot.Replica, how method) bool {
	switch {
	case how.recreates():
		return r.State == v1beta1.LifecyclePreparingDelete
	case !how.change.NeedsRestart() || r.Restarting:
		return false
	default:
		return r.State == v1beta1.LifecyclePreparingUpdate
	}
}

func (v *mover) explain(why action.HoldKind, m desired.Candidate, how method) string {
	switch {
	case why == action.HeldByDomain:
		return domainWords{v.domains}.explain(m)
	case why == action.HeldByBudget && how.gentle():
		return fmt.Sprintf("maxUnavailable %d: %d pods are being resized", v.snap.Limits.MaxUnavailable, v.resizing[m.To])
	default:
		return v.budget.explain(why, m)
	}
}

// spend takes a move into account.
func (v *mover) spend(m desired.Candidate, how method) {
	switch {
	case how.silent():
		if !m.Replica.Available {
			v.budget.unavailable[m.To]++ // as the next plan will count it
		}
	case how.gentle() && !m.Replica.OutOfService():
		v.resizing[m.To]++
		v.domains.disturb(m.Replica)
	default:
		v.budget.spend(m)
		v.domains.disturb(m.Replica)
	}
}

// foreign returns how an adopted pod, which was made from no revision of the set, differs from the template.
func (v *mover) foreign(m desired.Candidate) string {
	to, answer, difference := v.snap.Known[m.To], v.snap.Preflights[m.To], ""
	switch {
	case v.snap.Known[m.Replica.Revision].Template != nil || to.Template == nil:
	case answer.Pod != nil:
		difference = v.snap.Difference(m.Replica, to, answer.Pod)
	case answer.Unclear():
		difference = v.snap.DifferenceAsWritten(m.Replica, to)
	}
	if difference == "" {
		return ""
	}
	return "the template gives another pod: " + difference
}

func deletion(m desired.Candidate, why string) action.Delete {
	if m.Named {
		return action.Delete{Pod: m.Replica.Pod, Cause: action.Replace, To: m.To, Reason: cmp.Or(m.Replica.Leaving, "replacement requested")}
	}
	reason := "recreate at " + m.To
	if why != "" {
		reason += ": " + why
	}
	return action.Delete{Pod: m.Replica.Pod, Cause: action.Move, To: m.To, Reason: reason}
}
