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

// turn is what a gate was turned to, and when.
type turn struct {
	position inplace.Position
	at       time.Time
}

// calmAfter is how long a gate is left alone that somebody else has turned after we did: whoever turns it all the time makes
// us write once in that time, and not at every turn.
const calmAfter = time.Second

// turnOf is the turn of a gate that an action is, and the pod's UID; the position is empty if it is none.
func turnOf(a action.Action, now time.Time) (pod types.UID, t turn) {
	if open, ok := a.(action.OpenGate); ok {
		return open.Pod.UID, turn{inplace.Open, now}
	}
	if closed, ok := a.(action.CloseGate); ok {
		return closed.Pod.UID, turn{inplace.Closed, now}
	}
	return "", turn{}
}

// calm is how long an action has to wait because it turns a gate to where we turned it a moment ago.
func (m *recollection) calm(a action.Action, now time.Time) time.Duration {
	pod, t := turnOf(a, now)
	last, ok := m.turns[pod]
	if !ok || last.position != t.position {
		return 0
	}
	return min(calmAfter, last.at.Add(calmAfter).Sub(now))
}

// noteTurns notes the gates that a plan has turned, and forgets those that were turned longer ago.
func (m *recollection) noteTurns(p action.Plan, now time.Time) {
	maps.DeleteFunc(m.turns, func(_ types.UID, t turn) bool { return now.Sub(t.at) >= calmAfter })
	for _, a := range p.Actions {
		pod, t := turnOf(a, now)
		if t.position == "" {
			continue
		}
		if m.turns == nil {
			m.turns = map[types.UID]turn{}
		}
		m.turns[pod] = t
	}
}
