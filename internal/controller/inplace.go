// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/action"
	"rollset.dev/rollset/internal/inplace"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/observed"
)

// seeChanges fills in how far the updates in place of a set's pods are.
func (v *view) seeChanges(o *observed.Set) {
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !r.Live() {
			continue
		}
		if len(r.InPlace.Resized) > 0 {
			v.seeResize(r, o.Known[r.Revision])
		}
		r.State, r.Hook = lifecycle.StateOf(o.Spec, r.Pod), lifecycle.Waits(o.Spec, r.Pod)
		r.Withdrawn = lifecycle.Withdraws(o.Spec, r.State)
		if r.Withdrawn && r.State == v1alpha1.LifecyclePreparingDelete && r.Gate.Closed() {
			r.Specified = true // it is not going to serve again
		}
		r.Updating = r.State != "" || r.Gate.Closed() || r.Waiting != "" && r.InPlace.Restarts(r.Pod)
		r.Available = r.Available && !r.Updating
	}
}

// seeResize fills in whether a pod has the resources of its revision, a template, and if not whether it can get them where
// it is. What the API server refused it never asked the node for. Nobody tells us when it would agree: it is asked again
// after a while.
func (v *view) seeResize(r *observed.Replica, to *corev1.PodTemplateSpec) {
	if _, r.Waiting = inplace.Done(r.Pod, to, r.InPlace); r.Waiting == "" {
		return
	}
	if inplace.Asked(r.Pod, to, r.InPlace) {
		r.Infeasible = inplace.Infeasible(r.Pod, to, r.InPlace)
		return
	}
	if refused, ok := v.memory.resizes[r.Pod.UID]; ok && refused.revision == r.Revision {
		r.Infeasible = refused.message
		r.AskAgain = refused.again.wait(r.Revision, v.now) == 0
	}
}

// impossible is a resize that the API server refused.
type impossible struct {
	// revision is the one that asks for it.
	revision, message string
	again             backOff
}

// noteResizes notes the resizes that the API server refused, and forgets those of pods that have moved on.
func (m *recollection) noteResizes(o *observed.Set, refused map[types.UID]string) {
	if len(refused)+len(m.resizes) == 0 {
		return
	}
	resizes := map[types.UID]*impossible{}
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !r.Live() || r.Waiting == "" {
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
