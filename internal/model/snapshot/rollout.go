// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	"rollset.dev/rollset/api/v1alpha1"
)

// Rollout is how far a rollout in steps has come. The zero value says that there are no steps to take.
type Rollout struct {
	// Keeps is how many pods the step at work keeps at the current revision. It is that of the step that the status tells of,
	// so that no pod moves for a step that nobody would know of after a crash.
	Keeps int
	// Next is what status.rollout is to be; nil if there are no steps to take.
	Next *v1alpha1.RolloutStatus
	// Turning is true when Next begins: pods move for it only once the status says so.
	Turning bool
	// Gates are the conditions that the step waits for, and Begins those of them that are to begin anew, as Unknown. Closed
	// are those that are not True yet.
	Gates, Begins, Closed []string
	// Failure says why the step failed; empty if it did not.
	Failure string
	// Wake is how long until time alone changes any of this; zero means never.
	Wake time.Duration
}

// AtWork says whether a step is at work: there are steps to take, and they are not all done.
func (r *Rollout) AtWork() bool {
	return r.Next != nil && r.Next.Step > 0 && r.Next.Step <= r.Next.Steps
}

// Rests says whether a step has all its pods, and waits for time, a gate or a person.
func (r *Rollout) Rests() bool { return r.AtWork() && r.Next.Phase != v1alpha1.RolloutRolling }
