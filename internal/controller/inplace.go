// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// seeChanges fills in how far the updates in place of a set's pods are.
func (v *view) seeChanges(o *snapshot.Set) {
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !r.Live() {
			continue
		}
		if !r.InPlace.Empty() {
			v.seeProgress(r, o)
		}
		r.State, r.Hook = lifecycle.StateOf(o.Spec, r.Pod), lifecycle.Waits(o.Spec, r.Pod)
		r.Withdrawn = lifecycle.Withdraws(o.Spec, r.State)
		if r.Withdrawn && r.State == v1alpha1.LifecyclePreparingDelete && r.Gate.Closed() {
			r.Specified = true // it is not going to serve again
		}
		r.Updating = r.State != "" || r.Gate.Closed() || r.Restarting
		r.Available = r.Available && !r.Updating
	}
}

// seeProgress fills in how far the update in place of a pod is is.
func (v *view) seeProgress(r *snapshot.Replica, o *snapshot.Set) {
	to := o.Known[r.Revision]
	if r.Progress.Restart != "" || len(r.InPlace.Resized) > 0 {
		r.Progress = inplace.Of(r.Pod, to, r.InPlace, v.sightings.of(r.Pod.UID))
	}
	r.Waiting = cmp.Or(r.Progress.Restart, r.Progress.Resize)
	r.Restarting = r.Progress.Restart != ""
	if r.Progress.Resize != "" {
		v.seeResize(r, to)
		r.Restarting = r.Restarting || !r.Progress.Postponed && r.InPlace.ResizeRestarts(r.Pod)
	}
	if r.Progress.Restart != "" && podstate.ContainersReady(r.Pod) {
		v.seeProof(r, o)
	}
}

// seeResize fills in whether a pod has the resources of its revision, a template, and if not whether it can get them where
// it is. What the API server refused it never asked the node for. Nobody tells us when it would agree: it is asked again
// after a while.
func (v *view) seeResize(r *snapshot.Replica, to *corev1.PodTemplateSpec) {
	if inplace.Asked(r.Pod, to, r.InPlace) {
		r.Infeasible = inplace.Infeasible(r.Pod, to, r.InPlace)
		return
	}
	if refused, ok := v.memory.resizes[r.Pod.UID]; ok && refused.revision == r.Revision {
		r.Infeasible, r.Progress.Postponed = refused.message, true
		r.AskAgain = refused.again.wait(r.Revision, v.now) == 0
	}
}

// unproven is since when a pod with ready containers has been waiting for a proof that they are the new ones.
type unproven struct {
	// generation is the one of the update.
	generation int64
	since      time.Time
}

// seeProof fills in how long a proof is still waited for that the containers of a pod are the new ones. What is known of the
// time is lost with the manager: then the wait begins anew. A container that is still to end has its grace period for that.
func (v *view) seeProof(r *snapshot.Replica, o *snapshot.Set) {
	wait, limited := o.ProgressDeadline()
	if !limited {
		return
	}
	if grace := r.Pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		wait = max(wait, time.Duration(*grace)*time.Second)
	}
	known, ok := v.memory.proofs[r.Pod.UID]
	if !ok || known.generation != r.InPlace.Generation {
		known = unproven{generation: r.InPlace.Generation, since: v.now}
	}
	if v.memory.proofs == nil {
		v.memory.proofs = map[types.UID]unproven{}
	}
	v.memory.proofs[r.Pod.UID] = known
	if r.ProofWait = min(known.since.Add(wait).Sub(v.now), wait); r.ProofWait <= 0 {
		r.ProofWait, r.Unproven = 0, fmt.Sprintf("no proof of the update in place in %s: %s", wait, r.Progress.Restart)
	}
}

// forgetProofs forgets since when pods have been waiting that do not wait any more.
func (m *recollection) forgetProofs(o *snapshot.Set) {
	if len(m.proofs) == 0 {
		return
	}
	waiting := map[types.UID]unproven{}
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Live() && (r.ProofWait > 0 || r.Unproven != "") {
			waiting[r.Pod.UID] = m.proofs[r.Pod.UID]
		}
	}
	m.proofs = waiting
}

// impossible is a resize that the API server refused.
type impossible struct {
	// revision is the one that asks for it.
	revision, message string
	again             backOff
}

// noteResizes notes the resizes that the API server refused, and forgets those of pods that have moved on.
func (m *recollection) noteResizes(o *snapshot.Set, refused map[types.UID]string) {
	if len(refused)+len(m.resizes) == 0 {
		return
	}
	resizes := map[types.UID]*impossible{}
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !r.Live() || r.Progress.Resize == "" {
			continue
		}
		known := m.resizes[r.Pod.UID]
		if message, ok := refused[r.Pod.UID]; ok {
			if known == nil {
				known = &impossible{}
			}
			known.revision, known.message = r.Revision, message
			known.again.failed(r.Revision, o.Now)
		}
		if known != nil && known.revision == r.Revision {
			resizes[r.Pod.UID] = known
		}
	}
	m.resizes = resizes
}

// turn is what a gate was turned to.
type turn struct {
	pod      types.UID
	position inplace.Position
}

// calmAfter is how long a gate is not turned again to where we turned it, though somebody else has turned it since, or we
// have because of others: whoever turns gates all the time makes us write twice in that time, and not at every turn.
const calmAfter = time.Second

// turnOf is the turn of a gate that an action is; the position is empty if it is none.
func turnOf(a action.Action) turn {
	if open, ok := a.(action.OpenGate); ok {
		return turn{open.Pod.UID, inplace.Open}
	}
	if closed, ok := a.(action.CloseGate); ok {
		return turn{closed.Pod.UID, inplace.Closed}
	}
	return turn{}
}

// calm is how long an action has to wait because it turns a gate to where we turned it a moment ago.
func (m *recollection) calm(a action.Action, now time.Time) time.Duration {
	last, ok := m.turns[turnOf(a)]
	if !ok {
		return 0
	}
	return min(calmAfter, last.Add(calmAfter).Sub(now))
}

// noteTurns notes the gates that a plan has turned, and forgets those that were turned longer ago.
func (m *recollection) noteTurns(p action.Plan, now time.Time) {
	maps.DeleteFunc(m.turns, func(_ turn, at time.Time) bool { return now.Sub(at) >= calmAfter })
	for _, a := range p.Actions {
		t := turnOf(a)
		if t.position == "" {
			continue
		}
		if m.turns == nil {
			m.turns = map[turn]time.Time{}
		}
		m.turns[t] = now
	}
}
