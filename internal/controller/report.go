// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/claims"
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
func (r *Reconciler) report(ctx context.Context, s step) (time.Duration, error) {
	report := status.Compute(s.statusInput())
	s.memory.progress = report.Progress
	r.Metrics.observed(s, report)
	wait := sooner(s.plan.RequeueAfter, report.RequeueAfter)
	rest, err := r.mark(ctx, s, report)
	wait = sooner(wait, rest)
	if !status.NeedsWrite(&s.set.Status, &report.Status) {
		return wait, err
	}
	hold := s.memory.hold(s.now)
	if hold > 0 && status.Urgent(&s.set.Status, &report.Status) && s.memory.hurry(s.now) {
		hold = 0
	}
	hold = max(hold, s.memory.outdated.wait(s.set.ResourceVersion, s.now))
	if hold > 0 {
		return sooner(wait, hold), err
	}
	return wait, errors.Join(err, r.writeStatus(ctx, s, report))
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
		Generation:     s.set.Generation,
		Previous:       &s.set.Status,
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

// refusedWrite is the write that the API server refused last, the most telling one if there are several. That somebody
// else was faster is no refusal.
func (s step) refusedWrite() *status.Failure {
	m := s.memory
	switch {
	case s.failure != nil && !apierrors.IsConflict(s.failure):
		return &status.Failure{Reason: podcontrol.FailedUpdate, Message: s.failure.Error()}
	case m.creates.message != "" && m.creates.invalid:
		return &status.Failure{Reason: status.ReasonInvalidTemplate, Message: m.creates.message}
	case m.creates.message != "":
		return &status.Failure{Reason: podcontrol.FailedCreate, Message: m.creates.message}
	case m.deletes.message != "":
		return &status.Failure{Reason: podcontrol.FailedDelete, Message: m.deletes.message}
	case m.relabels.message != "":
		return &status.Failure{Reason: podcontrol.FailedUpdate, Message: m.relabels.message}
	case m.updates.message != "":
		return &status.Failure{Reason: podcontrol.FailedUpdate, Message: m.updates.message}
	case m.claims.message != "":
		return &status.Failure{Reason: podcontrol.FailedUpdate, Message: m.claims.message}
	default:
		return nil
	}
}

// writeStatus replaces the status, if the set is still as it was seen.
func (r *Reconciler) writeStatus(ctx context.Context, s step, report status.Report) error {
	set := s.set.DeepCopy()
	set.Status = report.Status
	patch := client.MergeFromWithOptions(s.set, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, set, patch); err != nil {
		if apierrors.IsConflict(err) { // in vain until the cache shows another version
			s.memory.outdated.failed(s.set.ResourceVersion, s.now)
		}
		return fmt.Errorf("write status: %w", err)
	}
	s.memory.reported = s.now
	r.Expectations.Wrote(set.UID, setKind(), set.ResourceVersion)
	r.tellStep(s, report.Status.Rollout)
	return nil
}

// mark notes on the update revision what became of its rollout, so that it outlives the status. If it cannot be done now,
// rest is when to try again.
func (r *Reconciler) mark(ctx context.Context, s step, report status.Report) (rest time.Duration, err error) {
	switch {
	case report.Verdict != "":
		return r.reject(ctx, s, report.Verdict)
	case s.failure == nil && s.invalid == nil && status.Complete(s.observed):
		return r.complete(ctx, s)
	default:
		return 0, nil
	}
}

// complete notes on the update revision that it is complete.
func (r *Reconciler) complete(ctx context.Context, s step) (rest time.Duration, err error) {
	for _, seen := range s.view.revisions {
		if seen.Name != s.observed.Update.Name {
			continue
		}
		completed := revision.Completed(seen)
		if completed == nil {
			return 0, nil
		}
		if rest, err = r.patchRevision(ctx, s.view, seen, completed); err != nil {
			return 0, fmt.Errorf("note that revision %s is complete: %w", seen.Name, err)
		}
		return rest, nil
	}
	return 0, nil
}

// reject notes on the update revision that its rollout was given up, so that nobody forgets it. If it cannot be done now,
// rest is when to try again.
func (r *Reconciler) reject(ctx context.Context, s step, verdict string) (rest time.Duration, err error) {
	for _, seen := range s.view.revisions {
		if seen.Name != s.observed.Update.Name {
			continue
		}
		rejected := seen.DeepCopy()
		if rejected.Annotations == nil {
			rejected.Annotations = map[string]string{}
		}
		rejected.Annotations[revision.RejectedAnnotation] = verdict
		if rest, err = r.patchRevision(ctx, s.view, seen, rejected); err != nil {
			return 0, fmt.Errorf("reject revision %s: %w", seen.Name, err)
		} else if rest > 0 {
			return rest, nil
		}
		logr.FromContextOrDiscard(ctx).Info("rejected revision", "revision", seen.Name, "reason", verdict)
		r.Events.Eventf(s.set, nil, corev1.EventTypeWarning, status.ReasonRolledBack, "Reject",
			"Revision %s %s; all pods go back to revision %s", seen.Name, status.Sentence(verdict), s.observed.Current.Name)
	}
	return 0, nil
}
