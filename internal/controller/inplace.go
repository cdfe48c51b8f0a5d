// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
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
		r.Gate = inplace.GateOf(r.Pod)
		r.InPlace, _ = inplace.StateOf(r.Pod) // what cannot be read counts for nothing
		_, r.Waiting = inplace.Done(r.Pod, o.Known[r.Revision], r.InPlace)
		if r.Waiting != "" && len(r.InPlace.Resized) > 0 {
			r.Infeasible = cmp.Or(inplace.Infeasible(r.Pod, o.Known[r.Revision], r.InPlace), v.memory.infeasible(r, v.now))
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

// impossible is a resize that the API server refused.
type impossible struct {
	// revision is the one that asks for it.
	revision, message string
	again             backOff
}

// infeasible says why the API server refused to give a pod the resources of its revision. That is tried again after a
// while, if the pod is still there: nobody tells us that it would now agree.
func (m *recollection) infeasible(r *observed.Replica, now time.Time) string {
	if refused, ok := m.resizes[r.Pod.UID]; ok && refused.again.wait(r.Revision, now) > 0 {
		return refused.message
	}
	return ""
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
