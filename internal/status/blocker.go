// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Blocking is a stable word for what a set waits for: one of the words here, or an [action.HoldKind]. Metrics use it as a
// label.
type Blocking string

// These are the words for what a set waits for, apart from holds.
const (
	BlockedByScheduling  Blocking = "unscheduled"   // a pod has no node
	BlockedByPod         Blocking = "not-ready"     // a pod is not ready
	BlockedByMinReady    Blocking = "not-available" // a pod is ready, but not for long enough
	BlockedByChange      Blocking = "changing"      // an update in place of a pod is not done
	BlockedByEnd         Blocking = "ended"         // a pod has failed or succeeded
	BlockedByRefusal     Blocking = "refused"       // the API server refuses what the set needs
	BlockedByTermination Blocking = "terminating"   // a pod is terminating
	BlockedByRejection   Blocking = "rolled-back"   // the update revision was rejected
	BlockedByInvalidSpec Blocking = "invalid-spec"  // the spec is invalid
	BlockedBySoak        Blocking = "soak"          // a step soaks
	BlockedByGate        Blocking = "gate"          // a step waits for a gate
	BlockedByPromotion   Blocking = "promotion"     // a step waits for a person
	BlockedByFailedStep  Blocking = "step-failed"   // a step failed
)

// blocker is the first thing that a set waits for; the zero value if there is none.
type blocker struct {
	kind Blocking
	// text is a clause with the subject and the cause; empty if the headline of the message already says so.
	text string
}

// waiting begins the text of most blockers.
const waiting = "waiting for "

// obstacles finds what keeps the set from its goal.
type obstacles struct{ *facts }

// blocker returns what the set waits for first: the limit on creation, if it keeps a pod from being created; an unavailable
// pod that is where it belongs, because everything else may wait for it; then what the API server refuses; then what the plan
// holds; then a terminating pod. A spent budget says less than what it is spent on, so it comes last.
func (f obstacles) blocker() blocker {
	b := f.first()
	i := slices.IndexFunc(f.in.Plan.Held, func(h action.Hold) bool { return h.Kind == action.HeldByDrain })
	if i < 0 || b.kind == "" || b.text == "" || b.kind == Blocking(action.HeldByDrain) || f.in.Invalid != "" {
		return b
	}
	return blocker{b.kind, b.text + "; drain: " + f.in.Plan.Held[i].String()} // a user who drains the node looks here
}

// first returns the first thing that the set waits for, but for drains.
func (f obstacles) first() blocker {
	candidates := []func() blocker{f.limited, f.unavailablePod, f.changingPod, f.endedPod, f.refusal, f.holdOfItsOwn, f.terminatingPod, f.hold}
	switch {
	case f.in.Invalid != "":
		return blocker{kind: BlockedByInvalidSpec}
	case f.in.Deleting, f.settled && f.empty():
		return blocker{}
	case f.settled && f.snap.Rejected:
		return blocker{kind: BlockedByRejection}
	case f.atWork() && !f.snap.Rollout.Waits && (f.settled || f.snap.Rollout.Failure != ""):
		return f.stepBlocker()
	case f.settled:
		return f.hold()
	}
	for _, candidate := range candidates {
		if b := candidate(); b.kind != "" {
			return b
		}
	}
	return blocker{}
}

// limited returns the pod that scaleStrategy.maxUnavailable keeps from being created, and the pod that it waits for. A message
// that named only the latter would not say why another is missing.
func (f obstacles) limited() blocker {
	i := slices.IndexFunc(f.in.Plan.Held, func(h action.Hold) bool { return h.Kind == action.HeldByLimit })
	if i < 0 {
		return blocker{}
	}
	limit := f.held(&f.in.Plan.Held[i])
	for _, candidate := range []func() blocker{f.unavailablePod, f.changingPod, f.endedPod} {
		if b := candidate(); b.kind != "" {
			return blocker{limit.kind, limit.text + "; " + strings.TrimPrefix(b.text, waiting)}
		}
	}
	return blocker{}
}

// unavailablePod returns the first unready pod that stays. One whose containers all run comes after the others, because it may wait for
// them. If all are ready, it returns the first unavailable one.
func (f obstacles) unavailablePod() blocker {
	var running, ready *snapshot.Replica
	for r := range f.snap.Unsteady() {
		switch {
		case !r.Active() || f.excess[r.Revision] > 0 || changes(r):
		case !r.Ready && !podstate.AllRun(r.Pod):
			return f.unreadyPod(r)
		case !r.Ready:
			running = cmp.Or(running, r)
		case !r.Available:
			ready = cmp.Or(ready, r)
		}
	}
	if running != nil {
		return f.unreadyPod(running)
	}
	if ready == nil {
		return blocker{}
	}
	if availableIn(f.snap, ready) > 0 {
		return f.waitingFor(BlockedByMinReady, ready, "ready for less than minReadySeconds"+f.clockError())
	}
	return f.waitingFor(BlockedByMinReady, ready, "ready, but not available yet"+f.clockError())
}

// unreadyPod returns the blocker for an unready pod.
func (f obstacles) unreadyPod(r *snapshot.Replica) blocker {
	why := cmp.Or(podstate.Why(r.Pod), "not ready") + f.kept(r)
	if r.Scheduled {
		return f.waitingFor(BlockedByPod, r, why)
	}
	if claim := claims.Unbound(f.snap, r); claim != "" {
		why += "; " + claim // the scheduler does not name the claim
	}
	return f.waitingFor(BlockedByScheduling, r, why)
}

// clockError says by how much the manager's clock is wrong; empty if it is not. A pod became ready by the clocks of others.
func (f obstacles) clockError() string {
	switch ahead := f.snap.ClockAhead; {
	case ahead > 0:
		return fmt.Sprintf("; the manager's clock is %s ahead of the API server's: synchronize it", ahead)
	case ahead < 0:
		return fmt.Sprintf("; the manager's clock is %s behind the API server's: synchronize it", -ahead)
	default:
		return ""
	}
}

// changes reports whether a pod waits only for a lifecycle hook or an update in place, and its containers are fine.
func changes(r *snapshot.Replica) bool {
	return (r.Hook != "" || r.Waiting != "") && (r.Ready || podstate.ContainersReady(r.Pod))
}

// changingPod returns the first pod whose update in place is not done, or that waits for a lifecycle hook. If its resize was not
// sent, the refusal says why.
func (f obstacles) changingPod() blocker {
	for r := range f.snap.Unsteady() {
		if r.Progress.Resize != "" && f.snap.Refusal(attempt.OfPod(attempt.Resizing, r.Pod)).Message != "" {
			continue
		}
		if r.Active() && changes(r) && r.Infeasible == "" && r.Unproven == "" { // otherwise a hold says why it stays
			kind := BlockedByChange
			if r.Overdue {
				kind = Blocking(action.HeldByTimeout)
			}
			return f.waitingFor(kind, r, cmp.Or(r.Hook, r.Waiting))
		}
	}
	return blocker{}
}

// kept explains that a broken pod is not replaced because of the partition, if all others are where they belong.
func (f obstacles) kept(r *snapshot.Replica) string {
	if f.moving > 0 {
		return ""
	}
	for _, h := range f.in.Plan.Held {
		if h.Kind == action.HeldByPartition && h.Subject == r.Pod.Name {
			return "; the partition keeps it at revision " + r.Revision
		}
	}
	return ""
}

// endedPod returns the first pod that has failed or succeeded and is to be replaced.
func (f obstacles) endedPod() blocker {
	for r := range f.snap.Unsteady() {
		if r.Pod != nil && r.Finished && !r.Terminating {
			return f.waitingFor(BlockedByEnd, r, cmp.Or(podstate.Why(r.Pod), "ended"))
		}
	}
	return blocker{}
}

// refusal returns what the API server refuses.
func (f obstacles) refusal() blocker {
	switch failure := f.failure(); {
	case failure == nil:
		return blocker{}
	case failure.Reason == v1beta1.ReasonInvalidTemplate:
		return blocker{BlockedByRefusal, "the API server refuses: " + failure.Message}
	case failure.Reason == v1beta1.ReasonClaimConflict, failure.Reason == v1beta1.ReasonNameConflict:
		return blocker{BlockedByRefusal, waiting + failure.Message}
	default:
		return blocker{BlockedByRefusal, "failed: " + failure.Message}
	}
}

// holdOfItsOwn returns the first hold of the plan that is not about what other pods have spent, or must do first. Why an old pod is
// still there says more than that new ones wait for it, and what a named pod waits for says more than that others are paused.
func (f obstacles) holdOfItsOwn() (b blocker) {
	for i := range f.in.Plan.Held {
		switch h := &f.in.Plan.Held[i]; h.Kind {
		case action.HeldByBudget, action.HeldByGuard, action.HeldByDomain, action.HeldByOrder:
		case action.HeldByOldPods, action.HeldByPause:
			b = f.held(h)
		default:
			return f.held(h)
		}
	}
	return b
}

// hold returns the first hold of the plan.
func (f obstacles) hold() blocker {
	if len(f.in.Plan.Held) == 0 {
		return blocker{}
	}
	return f.held(&f.in.Plan.Held[0])
}

// held returns what a hold is about. If the pod that it names is terminating, it returns why that pod is not gone yet.
func (f obstacles) held(h *action.Hold) blocker {
	kind := Blocking(h.Kind)
	if h.Kind == action.HeldByPause && f.snap.Paused() { // the headline says so
		return blocker{kind: kind}
	}
	for r := range f.snap.Unsteady() {
		if r.Pod != nil && r.Terminating && r.Pod.Name == h.Subject {
			return f.waitingFor(kind, r, cmp.Or(podstate.Why(r.Pod), "Terminating")+"; "+h.Reason)
		}
	}
	return blocker{kind, waiting + h.String()}
}

// terminatingPod returns the first terminating pod.
func (f obstacles) terminatingPod() blocker {
	for r := range f.snap.Unsteady() {
		if r.Pod != nil && r.Terminating {
			return f.waitingFor(BlockedByTermination, r, cmp.Or(podstate.Why(r.Pod), "Terminating"))
		}
	}
	return blocker{}
}

// waitingFor returns the blocker for a pod. Where other failure domains may wait for the pod too, it names that of the pod.
func (f obstacles) waitingFor(kind Blocking, r *snapshot.Replica, why string) blocker {
	name := r.Pod.Name
	if spec := f.snap.Domains(); spec != nil && r.Active() {
		if home, known, counts := r.Home(spec.LabelKey); known && counts && home.Pod == "" {
			name += " of " + home.In(spec.LabelKey)
		}
	}
	return blocker{kind, waiting + name + ": " + why}
}

// failure returns what the API server refuses, or what blocks a pod; nil if there is nothing. What every observation shows
// is preferred to what one reconcile met with, so that the answer stays the same. For a set that is being deleted, nothing is
// written that could be refused.
func (f *facts) failure() *Failure {
	if f.in.Deleting {
		return nil
	}
	if refusal := f.refusedTemplate(); refusal != "" {
		return &Failure{Reason: v1beta1.ReasonInvalidTemplate, Message: refusal}
	}
	if f.in.Failure != nil {
		return f.in.Failure
	}
	for _, h := range f.in.Plan.Held {
		switch h.Kind {
		case action.HeldByClaim:
			return &Failure{Reason: v1beta1.ReasonClaimConflict, Message: h.String()}
		case action.HeldByName:
			return &Failure{Reason: v1beta1.ReasonNameConflict, Message: h.String()}
		case action.HeldByPreflight:
			isSubject := func(r snapshot.Replica) bool { return r.Pod != nil && r.Pod.Name == h.Subject }
			if !slices.ContainsFunc(f.snap.Replicas, isSubject) { // a pod that is to move is told by refusedTemplate
				return &Failure{Reason: v1beta1.ReasonFailedCreate, Message: h.String()}
			}
		default: // not a refusal of the API server
		}
	}
	return nil
}

// refusesTemplate reports whether the API server refuses pods made from the template.
func (f *facts) refusesTemplate() bool {
	failure := f.failure()
	return failure != nil && failure.Reason == v1beta1.ReasonInvalidTemplate
}

// refusedTemplate returns why the API server refuses pods of a revision that pods should move to; empty if it accepts them,
// could not judge them, was not asked, or only refuses the manager.
func (f *facts) refusedTemplate() string {
	lacking := f.total.active < f.snap.Limits.Replicas
	for _, revision := range []string{f.target(), f.snap.Current.Name} {
		if f.moving == 0 && (!lacking || f.revision(revision).active > 0) {
			continue
		}
		if answer := f.snap.Preflights[revision]; f.want[revision] > 0 && answer.Refuses() && !answer.NoRights {
			return fmt.Sprintf("pods of revision %s: %s", revision, answer.Refusal)
		}
	}
	return ""
}
