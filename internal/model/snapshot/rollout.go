// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	"rollset.dev/rollset/api/v1beta1"
)

// Rollout is the progress of a rollout in steps. The zero value means that there are no steps.
type Rollout struct {
	// Keeps is how many pods the step at work keeps at the current revision. It belongs to the step in the status, so that
	// no pod moves for a step that would be lost in a crash.
	Keeps int
	// Next is the new status.rollout; nil if there are no steps.
	Next *v1beta1.RolloutStatus
	// Waits is true if the partition or a pause keeps the step from being at work.
	Waits bool
	// Turning is true if Next begins a step: pods move for it only once the status says so.
	Turning bool
	// Gates are the conditions that the step waits for. Of these, Begins are reset to Unknown, and Closed are not True yet.
	Gates, Begins, Closed []string
	// Failure is why the step failed; empty if it did not.
	Failure string
	// Wake is how long until time alone changes any of this; zero means never.
	Wake time.Duration
}

// AtWork reports whether a step is at work: there are steps, and not all are done.
func (r *Rollout) AtWork() bool {
	return r.Next != nil && r.Next.Step > 0 && r.Next.Step <= r.Next.Steps
}

// Rests reports whether a step has all its pods, and waits for time, a gate or a person.
func (r *Rollout) Rests() bool { return r.AtWork() && r.Next.Phase != v1beta1.RolloutRolling }
