// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
)

// maxVerdict is the largest number of bytes of a verdict on a revision.
const maxVerdict = 512

// atWork reports whether a step of a rollout is at work.
func (f *facts) atWork() bool { return f.in.Invalid == "" && f.snap.Rollout.AtWork() }

// stepping reports whether a step is at work, or its end is not yet seen by the planner that moves pods. A step that waits for the
// partition or the end of a pause is not at work.
func (f *facts) stepping() bool {
	return f.in.Invalid == "" && !f.proven && !f.snap.Rollout.Waits && (f.snap.Rollout.AtWork() || f.snap.Rollout.Turning)
}

// stepper tells of a rollout in steps.
type stepper struct{ *facts }

// rollout returns the progress of a rollout in steps; nil for an invalid spec.
func (f stepper) rollout() *v1beta1.RolloutStatus {
	switch {
	case f.in.Invalid != "":
		return f.previous.Rollout.DeepCopy()
	case f.proven:
		return nil
	default:
		return f.snap.Rollout.Next.DeepCopy()
	}
}

// stepVerdict returns the condition Progressing while a step is at work.
func (f stepper) stepVerdict() verdict {
	switch f.snap.Rollout.Next.Phase {
	case v1beta1.RolloutFailed:
		return verdict{metav1.ConditionFalse, v1beta1.ReasonStepFailed}
	case v1beta1.RolloutSoaking:
		return verdict{metav1.ConditionTrue, v1beta1.ReasonSoaking}
	case v1beta1.RolloutGated:
		return verdict{metav1.ConditionTrue, v1beta1.ReasonAwaitingGate}
	case v1beta1.RolloutPaused:
		return verdict{metav1.ConditionUnknown, v1beta1.ReasonAwaitingPromotion}
	default:
		return verdict{metav1.ConditionTrue, v1beta1.ReasonRollingUpdate}
	}
}

// stepNumbers returns which step is at work, and how many of all pods are updated.
func (f stepper) stepNumbers() string {
	next := f.snap.Rollout.Next
	return fmt.Sprintf("step %d of %d: ", next.Step, next.Steps) +
		share(f.members(f.snap.Update.Name).active, f.snap.Limits.Replicas, "updated")
}

// stepBlocker returns what a step waits for that has all its pods, or why it failed.
func (f obstacles) stepBlocker() blocker {
	r := &f.snap.Rollout
	switch r.Next.Phase {
	case v1beta1.RolloutFailed:
		return blocker{BlockedByFailedStep, r.Failure}
	case v1beta1.RolloutSoaking:
		return blocker{BlockedBySoak, "soaking until " + clockTime(r.Next.Until, r.Next.Since)}
	case v1beta1.RolloutGated:
		text := "waiting for gate " + strings.Join(r.Closed, ", ")
		if r.Next.Until != nil {
			text += " until " + clockTime(r.Next.Until, r.Next.Since)
		}
		return blocker{BlockedByGate, text}
	case v1beta1.RolloutPaused:
		if f.snap.Paused() {
			return blocker{kind: BlockedByPromotion} // the headline says why
		}
		text := fmt.Sprintf("waiting for annotation %s=%s/%d", v1beta1.PromoteAnnotation, r.Next.Revision, r.Next.Step)
		if r.Next.IgnoredPromotion != "" {
			text += "; the one that is there was set before the step began: take it away and set it again"
		}
		return blocker{BlockedByPromotion, text}
	default:
		return blocker{}
	}
}

// clockTime formats a time for users, with its date if that differs from the date of another time.
func clockTime(t, beside *metav1.Time) string {
	at, from := t.UTC(), beside.UTC()
	if at.Format(time.DateOnly) == from.Format(time.DateOnly) {
		return at.Format("15:04:05Z")
	}
	return at.Format(time.RFC3339)
}

// stepHolds reports whether a step failed and is not rolled back.
func (f *facts) stepHolds() bool {
	return f.atWork() && f.snap.Rollout.Failure != "" && !f.stepRollsBack()
}

// stepRollsBack reports whether a step failed, so that the update revision is to be given up.
func (f *facts) stepRollsBack() bool {
	return f.atWork() && f.snap.Rollout.Failure != "" && f.canGoBack() &&
		f.snap.Spec.UpdateStrategy.RollingUpdate.OnStepFailed == v1beta1.RollbackOnStepFailed
}

// rejection returns the verdict on the update revision if it is to be given up now; empty if it is not.
func (f stepper) rejection(t timing) string {
	switch {
	case f.stepRollsBack():
		next := f.snap.Rollout.Next
		text := fmt.Sprintf("%s: step %d of %d: %s", v1beta1.ReasonStepFailed, next.Step, next.Steps, f.snap.Rollout.Failure)
		return podstate.Printable(text, maxVerdict)
	case t.exceeded && f.canRollBack() && f.failed():
		return v1beta1.ReasonProgressDeadlineExceeded
	default:
		return ""
	}
}

// sameStep reports whether two statuses are about the same step, in the same phase.
func sameStep(a, b *v1beta1.RolloutStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Revision == b.Revision && a.Step == b.Step && a.Phase == b.Phase
}
