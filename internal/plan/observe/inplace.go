// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// judge sets which pods are updating, specified, surge and available, and the progress of their updates in place.
func (o *observer) judge() {
	hooked := o.Set.Spec.Lifecycle != nil
	for i := range o.snap.Replicas {
		r := &o.snap.Replicas[i]
		r.Surge = r.Surge && (!o.snap.Ordinal() || o.snap.Condemned(r) && r.Ordinal >= o.snap.Ordinals.At(0)) // below the range it goes like others
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
	o.memory.waits = o.waits
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
	if r.Withdrawn && r.State == v1beta1.LifecyclePreparingDelete && r.Gate.Closed() {
		r.Specified = true // it will not serve again
	}
}

// seeProgress sets the progress of a pod's update in place.
func (o *observer) seeProgress(r *snapshot.Replica) {
	to := o.snap.Known[r.Revision].Template
	if r.Progress = r.Shown; r.Progress.Restart != "" || len(r.InPlace.Resized) > 0 {
		r.Progress = inplace.Of(r.Pod, to, r.InPlace, o.Sighting(r.Pod.UID))
	}
	r.Waiting = cmp.Or(r.Progress.Restart, r.Progress.Resize)
	r.Restarting = r.Progress.Restart != ""
	if r.Progress.Resize != "" {
		o.seeResize(r, to)
		r.Restarting = r.Restarting || !r.Progress.Postponed && r.InPlace.ResizeRestarts(r.Pod)
	}
	if r.Progress.Restart == "" {
		return
	}
	if o.seeWait(r); podstate.ContainersReady(r.Pod) {
		o.seeDeadline(r, "no proof of the update in place in %s: %s", r.Progress.Restart)
	}
}

// seeResize sets whether a pod can get the resources of its revision on its node. If the API server refused them, the node never
// got the request. No event shows when the API server would accept them, so the write is repeated after a while. A quota or a policy
// that refuses them would refuse the pod's successor too, so recreating the pod does not help.
func (o *observer) seeResize(r *snapshot.Replica, to *corev1.PodTemplateSpec) {
	o.seeWait(r)
	if inplace.Asked(r.Pod, to, r.InPlace) {
		if r.Infeasible = inplace.Infeasible(r.Pod, to, r.InPlace); r.Infeasible == "" {
			o.seeDeadline(r, "not resized in %s: %s", r.Progress.Resize)
		}
		return
	}
	refused := o.snap.Refusal(attempt.OfPod(attempt.Resizing, r.Pod))
	if !refused.Definite {
		return
	}
	r.Progress.Postponed, r.AskAgain = true, refused.Retry == 0
	if refused.ByRule {
		r.Waiting = cmp.Or(r.Progress.Restart, refused.Message)
	} else {
		r.Infeasible = refused.Message
	}
}

// waiting is since when a pod has been waiting for the end of its update in place.
type waiting struct {
	// generation is the generation of the update. ready is true if the containers are ready, and one has to prove
	// that it was restarted.
	generation int64
	ready      bool
	since      time.Time
}

// seeWait sets how long a pod has been waiting for the end of its update in place, with containers that are ready or not. The start of
// the wait is lost with the manager, and then the wait starts again.
func (o *observer) seeWait(r *snapshot.Replica) {
	since, known := o.memory.waits[r.Pod.UID]
	now := waiting{generation: r.InPlace.Generation, ready: r.Progress.Restart != "" && podstate.ContainersReady(r.Pod), since: o.Now}
	if now.since = since.since; !known || now != since || since.since.After(o.Now) {
		now.since = o.Now
	}
	if o.waits == nil {
		o.waits = map[types.UID]waiting{}
	}
	o.waits[r.Pod.UID] = now
	r.Waited = o.Now.Sub(now.since)
}

// seeDeadline sets how much longer to wait for the end of a pod's update in place. A container that is still to end has its
// grace period in addition.
func (o *observer) seeDeadline(r *snapshot.Replica, late, what string) {
	wait, limited := o.snap.ProgressDeadline()
	if !limited {
		return
	}
	if grace := r.Pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		wait = max(wait, time.Duration(*grace)*time.Second)
	}
	if r.ProofWait = wait - r.Waited; r.ProofWait <= 0 {
		r.ProofWait, r.Unproven = 0, fmt.Sprintf(late, wait, what)
	}
}
