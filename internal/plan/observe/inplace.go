// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// judge sets which pods are updating, specified and available, and the progress of their updates in place.
func (o *observer) judge() {
	hooked := o.Set.Spec.Lifecycle != nil
	for i := range o.out.Replicas {
		r := &o.out.Replicas[i]
		if hooked && r.Pod != nil {
			o.seeHooks(r)
		}
		if !r.Active() {
			continue
		}
		if !r.InPlace.Empty() {
			o.seeProgress(r)
		}
		r.Updating = r.State != "" || r.Gate.Closed() || r.Restarting
		r.Available = r.Available && !r.Updating
	}
}

// seeHooks sets the state of a pod under the lifecycle hooks of the set. A finished pod too waits for a hook before it is deleted.
func (o *observer) seeHooks(r *snapshot.Replica) {
	if !r.Terminating {
		r.State = lifecycle.StateOf(&o.Set.Spec, r.Pod)
	}
	r.Passed = lifecycle.Passed(&o.Set.Spec, r.Pod)
	if !r.Active() {
		return
	}
	r.Hook, r.Overdue = lifecycle.Wait(&o.Set.Spec, r.Pod, o.Now)
	r.Withdrawn = lifecycle.Withdraws(&o.Set.Spec, r.State)
	if r.Withdrawn && r.State == v1alpha1.LifecyclePreparingDelete && r.Gate.Closed() {
		r.Specified = true // it will not serve again
	}
}

// seeProgress sets the progress of a pod's update in place.
func (o *observer) seeProgress(r *snapshot.Replica) {
	to := o.out.Known[r.Revision].Template
	if r.Progress = r.Shown; r.Progress.Restart != "" || len(r.InPlace.Resized) > 0 {
		r.Progress = inplace.Of(r.Pod, to, r.InPlace, o.Sighting(r.Pod.UID))
	}
	r.Waiting = cmp.Or(r.Progress.Restart, r.Progress.Resize)
	r.Restarting = r.Progress.Restart != ""
	if r.Progress.Resize != "" {
		seeResize(r, o.out)
		r.Restarting = r.Restarting || !r.Progress.Postponed && r.InPlace.ResizeRestarts(r.Pod)
	}
	if r.Progress.Restart != "" && podstate.ContainersReady(r.Pod) {
		o.seeProof(r)
	}
}

// seeResize sets whether a pod has the resources of its revision, and if not, whether it can get them on its node. If the
// API server refused them, the node was never asked. No event shows when the API server would accept them, so it is asked
// again after a while.
func seeResize(r *snapshot.Replica, o *snapshot.Set) {
	to := o.Known[r.Revision].Template
	if inplace.Asked(r.Pod, to, r.InPlace) {
		r.Infeasible = inplace.Infeasible(r.Pod, to, r.InPlace)
		return
	}
	if refused := o.Refusals[attempt.OfPod(attempt.Resizing, r.Pod)]; refused.Definite {
		r.Infeasible, r.Progress.Postponed = refused.Message, true
		r.AskAgain = refused.Retry == 0
	}
}

// unproven is since when a pod with ready containers has been waiting for proof that they are the new ones.
type unproven struct {
	// generation is the generation of the update.
	generation int64
	since      time.Time
}

// seeProof sets how much longer to wait for proof that the containers of a pod are the new ones. The start of the wait is
// lost with the manager, and then the wait starts again. A container that is still to end has its grace period in addition.
func (o *observer) seeProof(r *snapshot.Replica) {
	wait, limited := o.out.ProgressDeadline()
	if !limited {
		return
	}
	if grace := r.Pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		wait = max(wait, time.Duration(*grace)*time.Second)
	}
	known, ok := o.memory.proofs[r.Pod.UID]
	if !ok || known.generation != r.InPlace.Generation {
		known = unproven{generation: r.InPlace.Generation, since: o.Now}
	}
	if o.memory.proofs == nil {
		o.memory.proofs = map[types.UID]unproven{}
	}
	o.memory.proofs[r.Pod.UID] = known
	if r.ProofWait = min(known.since.Add(wait).Sub(o.Now), wait); r.ProofWait <= 0 {
		r.ProofWait, r.Unproven = 0, fmt.Sprintf("no proof of the update in place in %s: %s", wait, r.Progress.Restart)
	}
}

// forgetProofs forgets pods that no longer wait for proof.
func (m *Memory) forgetProofs(o *snapshot.Set) {
	if len(m.proofs) == 0 {
		return
	}
	waiting := map[types.UID]unproven{}
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Active() && (r.ProofWait > 0 || r.Unproven != "") {
			waiting[r.Pod.UID] = m.proofs[r.Pod.UID]
		}
	}
	m.proofs = waiting
}
