// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/status"
)

// reportEvery is how often the status of a set that changes all the time is written, unless users wait for the change.
const reportEvery = time.Second

// maxHurried is how many urgent writes may follow one another faster than that; each is paid for in reportEvery, so that a
// set whose readiness comes and goes makes two writes a second. Two managers that both think they lead, and do not agree on
// what is urgent, would else write as fast as they can.
const maxHurried = 5

// report writes the status if it changed, and returns when to come back because time alone may change something.
func (r *Reconciler) report(ctx context.Context, s step) time.Duration {
	report := status.Compute(s.statusInput())
	s.memory.progress = report.Progress
	r.Metrics.Observed(metrics.Observation{
		Set: client.ObjectKeyFromObject(s.Set), Report: report, Replicas: s.observed.Limits.Replicas, Update: s.observed.Update.Name, Now: s.Now,
	}, &s.memory.shownMetrics)
	r.mark(ctx, s, report)
	wait := sooner(s.plan.RequeueAfter, report.RequeueAfter)
	if status.NeedsWrite(&s.Set.Status, &report.Status) {
		wait = sooner(wait, r.writeInTime(ctx, s, report))
	}
	return sooner(wait, s.retry())
}

// writeInTime writes the status, unless it was written a moment ago: then it returns how long to wait.
func (r *Reconciler) writeInTime(ctx context.Context, s step, report status.Report) (hold time.Duration) {
	if hold = s.memory.hold(s.Now); hold > 0 && status.Urgent(&s.Set.Status, &report.Status) && s.memory.hurry(s.Now) {
		hold = 0
	}
	if hold == 0 && s.wait(action.Key{Verb: reporting}) == 0 {
		r.writeStatus(ctx, s, report)
	}
	return hold
}

// sooner is the smaller of two waits, of which zero means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// statusInput is all that a status depends on.
func (s step) statusInput() status.Input {
	in := status.Input{
		Set:            s.observed,
		Generation:     s.Set.Generation,
		Previous:       &s.Set.Status,
		Plan:           s.plan,
		Failure:        s.refusedWrite(),
		CollisionCount: s.memory.collisions,
		VolumeClaims:   claims.Status(s.observed),
		Progress:       s.memory.progress,
	}
	if s.invalid != nil {
		in.Invalid = s.invalid.Error()
	}
	return in
}

// refusedWrite is what keeps the plan from being made, or what the API server refuses of it. That somebody else was faster
// is no refusal.
func (s step) refusedWrite() *status.Failure {
	if s.failure != nil && !apierrors.IsConflict(s.failure) {
		return &status.Failure{Reason: podcontrol.FailedUpdate, Message: s.failure.Error()}
	}
	return s.refused()
}

// statusTimeout is the time that a write of the status has, whatever the writes before it have left of that of a reconcile.
const statusTimeout = 10 * time.Second

// statusRetry is the longest wait between two attempts to write the status.
const statusRetry = 20 * time.Second

// writeStatus replaces the status, if the set is still as it was seen. If it cannot be done now, it is tried again: at once
// when the cache shows another version of the set, else soon, however often it was refused. Nothing else waits for it, so it
// counts as no failure of the reconcile.
func (r *Reconciler) writeStatus(ctx context.Context, s step, report status.Report) {
	statusWrite := action.Key{Verb: reporting}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	set := s.Set.DeepCopy()
	set.Status = report.Status
	patch := client.MergeFromWithOptions(s.Set, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, set, patch); err != nil {
		s.memory.attempts.Failed(statusWrite, backoff.Failure{Version: s.version(statusWrite), Longest: statusRetry}, s.Now)
		if !apierrors.IsConflict(err) {
			logr.FromContextOrDiscard(ctx).Error(err, "cannot write the status")
		}
		return
	}
	s.memory.attempts.Succeeded(statusWrite)
	s.memory.reported = s.Now
	r.Expectations.Wrote(set.UID, informer.SetKind(), set.ResourceVersion)
	r.tellStep(s, report.Status.Rollout)
	r.tellStalled(s, report.Status.Conditions)
	if s.Set.Status.ObservedGeneration < 1 {
		r.tellOverlap(ctx, s)
	}
}

// mark notes on the update revision what became of its rollout, so that it outlives the status.
func (r *Reconciler) mark(ctx context.Context, s step, report status.Report) {
	switch {
	case report.Verdict != "":
		r.reject(ctx, s, report.Verdict)
	case s.failure == nil && s.invalid == nil && status.Complete(s.observed):
		r.complete(ctx, s)
	}
}

// complete notes on the update revision that it is complete.
func (r *Reconciler) complete(ctx context.Context, s step) {
	for _, seen := range s.Revisions {
		if seen.Name != s.observed.Update.Name {
			continue
		}
		if completed := revision.Completed(seen); completed != nil {
			r.patchRevision(ctx, s.view, seen, completed)
		}
	}
}

// reject notes on the update revision that its rollout was given up, so that nobody forgets it.
func (r *Reconciler) reject(ctx context.Context, s step, verdict string) {
	for _, seen := range s.Revisions {
		if seen.Name != s.observed.Update.Name {
			continue
		}
		rejected := seen.DeepCopy()
		if rejected.Annotations == nil {
			rejected.Annotations = map[string]string{}
		}
		rejected.Annotations[revision.RejectedAnnotation] = verdict
		if !r.patchRevision(ctx, s.view, seen, rejected) {
			continue
		}
		logr.FromContextOrDiscard(ctx).Info("rejected revision", "revision", seen.Name, "reason", verdict)
		r.Events.Eventf(s.Set, nil, corev1.EventTypeWarning, v1alpha1.ReasonRolledBack, "Reject",
			"Revision %s %s; all pods go back to revision %s", seen.Name, status.Sentence(verdict), s.observed.Current.Name)
	}
}
