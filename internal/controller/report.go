// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/controller/revisions"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/status"
)

// reportEvery is how often the status of a set that changes all the time is written, unless users wait for the change.
const reportEvery = time.Second

// maxUrgent is how many urgent writes may follow one another faster than that. Afterwards there is one in each reportEvery, so that a
// set whose readiness comes and goes makes two writes a second. Without this limit, two managers that both think they lead, and
// disagree on what is urgent, would write as fast as they can.
const maxUrgent = 5

// reporter reports the result of a reconcile: in the status, in events and in metrics.
type reporter struct {
	client       client.Client
	pods         informer.Pods
	expectations *expectations.Store
	events       events.EventRecorder
	metrics      *metrics.Metrics
	revisions    *revisions.Control
}

func (r *Reconciler) reporter(s *step) *reporter {
	return &reporter{
		client: r.Client, pods: r.Pods, expectations: r.Expectations, events: r.Events, metrics: r.Metrics, revisions: r.revisions(s),
	}
}

func statusWrite() attempt.Key { return attempt.Key{Verb: backoff.WritingStatus} }

// report writes the status if it changed, and returns when to come back because time alone may change something.
func (r *reporter) report(ctx context.Context, s *step) time.Duration {
	report := status.Compute(s.statusInput())
	s.memory.reports.progress = report.Progress
	r.metrics.Observed(metrics.Observation{
		Set: client.ObjectKeyFromObject(s.Set), Status: &report.Status, Blocking: string(report.Blocking), Replicas: s.snap.Limits.Replicas, Update: s.snap.Update.Name, Now: s.Now,
	}, &s.memory.reports.metrics)
	r.mark(ctx, s, report)
	wait := action.Sooner(s.plan.RequeueAfter, report.RequeueAfter)
	if status.NeedsWrite(&s.Set.Status, &report.Status) {
		wait = action.Sooner(wait, r.writeInTime(ctx, s, report))
	}
	return action.Sooner(wait, s.writes.Retry())
}

// writeInTime writes the status, unless it was written a moment ago: then it returns how long to wait. A status that the API server
// altered is not written again before its back-off ends, but another one is.
func (r *reporter) writeInTime(ctx context.Context, s *step, report status.Report) (hold time.Duration) {
	if hold = s.memory.reports.hold(s.Now); hold > 0 && status.Urgent(&s.Set.Status, &report.Status) && s.memory.reports.allowsUrgent(s.Now) {
		hold = 0
	}
	altered := s.memory.reports.altered
	if hold == 0 && (s.writes.Wait(statusWrite()) == 0 || altered != nil && status.NeedsWrite(altered, &report.Status)) {
		r.writeStatus(ctx, s, report)
	}
	return hold
}

// statusInput returns the input of the status.
func (s *step) statusInput() status.Input {
	in := status.Input{
		Snap:           s.snap,
		Generation:     s.Set.Generation,
		Previous:       &s.Set.Status,
		Plan:           s.plan,
		Deleting:       s.deleting(),
		Aborts:         revision.Aborts(s.Set, s.snap.Update.Name),
		Failure:        s.refusedWrite(),
		CollisionCount: s.memory.revisions.Collisions,
		VolumeClaims:   claims.Status(s.snap),
		Progress:       s.memory.reports.progress,
	}
	if s.invalid != nil {
		in.Invalid = s.invalid.Error()
	}
	return in
}

// statusTimeout is the timeout of a write of the status. It does not depend on the time that the writes before it have taken.
const statusTimeout = 10 * time.Second

// statusRetry is the longest wait between two attempts to write the status.
const statusRetry = 20 * time.Second

// writeStatus replaces the status, if the set has not changed since it was read. A write that fails is tried again: at once when the
// cache shows another version of the set, otherwise soon, however often it was refused. Nothing else depends on the status, so a
// failure is no failure of the reconcile.
func (r *reporter) writeStatus(ctx context.Context, s *step, report status.Report) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	err := r.patchStatus(ctx, s.Set, &report.Status)
	failure := backoff.Failure{Longest: statusRetry}
	if s.memory.reports.altered = nil; attempt.IsAltered(err) {
		s.memory.reports.altered, failure = &report.Status, backoff.Failure{Refused: true, Altered: true}
	}
	if err != nil {
		s.writes.Note(statusWrite(), failure)
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // the cache will show what came between
			logr.FromContextOrDiscard(ctx).Error(err, "cannot write the status")
		}
		return
	}
	s.writes.Succeeded(statusWrite())
	s.memory.reports.written = s.Now
	r.tellStep(s, report.Status.Rollout)
	r.tellStalled(s, report.Status.Conditions)
	if s.Set.Status.ObservedGeneration < 1 {
		r.tellOverlap(ctx, s)
	}
}

// patchStatus writes a status, and compares it with the answer of the API server. The answer is decoded into an empty set, because
// it would not overwrite what it lacks.
func (r *reporter) patchStatus(ctx context.Context, seen *v1beta1.RollSet, wanted *v1beta1.RollSetStatus) error {
	version := metav1.ObjectMeta{ResourceVersion: seen.ResourceVersion}
	patch := client.MergeFromWithOptions(&v1beta1.RollSet{ObjectMeta: version, Status: seen.Status}, client.MergeFromWithOptimisticLock{})
	data, err := patch.Data(&v1beta1.RollSet{ObjectMeta: version, Status: *wanted})
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	answer := &v1beta1.RollSet{}
	answer.Name, answer.Namespace = seen.Name, seen.Namespace
	if err := r.client.Status().Patch(ctx, answer, client.RawPatch(patch.Type(), data)); err != nil {
		return err
	}
	r.expectations.Wrote(seen.UID, informer.SetKind(), answer.ResourceVersion)
	sent, err := json.Marshal(wanted)
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	got, err := json.Marshal(&answer.Status)
	if err == nil && !bytes.Equal(sent, got) {
		return &attempt.AlteredError{What: "changed or kept parts of the status"}
	}
	return err
}

// mark records the result of a rollout on the update revision, so that it outlives the status.
func (r *reporter) mark(ctx context.Context, s *step, report status.Report) {
	switch {
	case report.Verdict != "":
		r.revisions.Reject(ctx, s.revisions, s.snap, report.Verdict)
	case !s.undecided() && s.snap.Proves() && !s.plan.Moves(): // pods that move away from it were there a moment ago
		r.revisions.Prove(ctx, s.revisions, s.snap)
	}
}
