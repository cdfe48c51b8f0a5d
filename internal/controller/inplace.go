// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/internal/inplace"
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
			r.Infeasible = v.memory.infeasible(r.Pod, r.Revision)
		}
		r.Updating = r.Gate.Closed() || r.Waiting != "" && r.InPlace.Restarts(r.Pod)
		r.Available = r.Available && !r.Updating
	}
}

// impossible is a resize that the API server refused. It is remembered for as long as the pod is at the revision.
type impossible struct{ revision, message string }

// infeasible says why a pod cannot get the resources of its revision, from its node or from the API server.
func (m *recollection) infeasible(pod *corev1.Pod, revision string) string {
	if message, is := inplace.Infeasible(pod); is {
		return message
	}
	if refused := m.resizes[pod.UID]; refused.revision == revision {
		return refused.message
	}
	return ""
}

// noteResizes notes the resizes that the API server refused, and forgets those of pods that are gone.
func (m *recollection) noteResizes(o *observed.Set, refused map[types.UID]string) {
	if len(refused)+len(m.resizes) == 0 {
		return
	}
	resizes := map[types.UID]impossible{}
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !r.Live() {
			continue
		}
		if message, ok := refused[r.Pod.UID]; ok {
			resizes[r.Pod.UID] = impossible{revision: r.Revision, message: message}
		} else if known, ok := m.resizes[r.Pod.UID]; ok {
			resizes[r.Pod.UID] = known
		}
	}
	m.resizes = resizes
}
