// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Progress is the furthest that a set has come towards what is wanted, and since when it has come no further. The zero value
// means that this is not known.
//
// It is kept in memory and not in the status, because no field of a condition holds when something last moved. After a
// restart it is rebuilt from the dates of conditions and pods.
type Progress struct {
	known bool
	goal  goal
	marks marks
	since time.Time // zero while the clock is stopped
}

// goal is the state that the set moves to.
type goal struct {
	target              string
	replicas, partition int
}

// marks are how far the set has come. They are high-water marks, so that a pod that is ready for a moment after each crash
// counts once.
type marks struct {
	// placed, ready and available count the pods at the revisions where they are wanted. Those that wait for a scheduling gate
	// are not placed yet.
	placed, ready, available int
	// left is how many pods are still to be deleted.
	left int
}

// timing is the state of the deadline's clock.
type timing struct {
	progress Progress
	exceeded bool
	// wait is how long until the deadline; zero if there is none.
	wait time.Duration
}

// clock judges how long a rollout has made no progress.
type clock struct{ *facts }

// tellTime advances the clock and reports whether the deadline has passed.
func (f clock) tellTime() timing {
	if f.idle() {
		return timing{progress: Progress{known: true}}
	}
	t := timing{progress: f.advance(f.in.Progress)}
	deadline, ok := f.snap.ProgressDeadline()
	if !ok {
		return t
	}
	elapsed := f.snap.Now.Sub(t.progress.since)
	if elapsed >= deadline {
		t.exceeded = true
	} else {
		t.wait = deadline - elapsed
	}
	return t
}

// idle reports whether the clock is stopped: everything wanted is there, a user has stopped it, nothing is wanted, the API server
// refuses the template, or a failure domain soaks.
// Terminating pods do not count. If a node is gone for good they never vanish, and the revision is not to blame.
func (f clock) idle() bool {
	return f.in.Invalid != "" || f.in.Deleting || f.empty() || f.refusesTemplate() || f.snap.Paused() || f.snap.Rollout.Rests() || f.soaks() || f.everyPodIsFine() || f.finished() || f.atPartition() || f.rollbackDone()
}

// soaks reports whether the next failure domain waits only for time to pass.
func (f clock) soaks() bool { return !f.in.Plan.SoaksUntil.IsZero() }

// advance records what was reached. The clock starts again at every new revision, and whenever more was reached than ever
// before. When only the wanted numbers change, the clock continues and the marks are taken again.
func (f clock) advance(p Progress) Progress {
	now := f.snap.Now
	next := Progress{
		known: true,
		goal:  goal{target: f.target(), replicas: f.snap.Limits.Replicas, partition: f.snap.Partition()},
		marks: f.marks(),
		since: p.since,
	}
	switch {
	case !p.known:
		next.since = f.reconstruct()
	case p.since.IsZero(), p.goal.target != next.goal.target:
		next.since = now
	case p.goal != next.goal:
	case next.marks.beyond(p.marks):
		next.marks, next.since = next.marks.best(p.marks), now
	default:
		next.marks = next.marks.best(p.marks)
	}
	if next.since.After(now) { // the clock was set back
		next.since = now
	}
	return next
}

// marks returns what is reached now.
func (f clock) marks() marks {
	var m marks
	for name, n := range f.revisions {
		m.placed += min(n.active-n.gated, f.want[name])
		m.ready += min(n.ready, f.want[name])
		m.available += min(n.available, f.want[name])
	}
	m.left = f.total.active - m.placed
	for _, n := range f.gone {
		m.left += n
	}
	return m
}

// beyond reports whether in some respect more was reached than before.
func (m marks) beyond(before marks) bool {
	return m.placed > before.placed || m.ready > before.ready || m.available > before.available || m.left < before.left
}

func (m marks) best(before marks) marks {
	return marks{
		placed:    max(m.placed, before.placed),
		ready:     max(m.ready, before.ready),
		available: max(m.available, before.available),
		left:      min(m.left, before.left),
	}
}

// reconstruct returns when the clock last started, as far as conditions and pods show it. If they do not, it starts now,
// because a late deadline is better than an early one.
func (f clock) reconstruct() time.Time {
	now := f.snap.Now
	if !f.sameRollout() || !f.wasMoving() {
		return now
	}
	since := now
	if last, ok := f.lastChange(); ok && last.Before(now) {
		since = last
	}
	if deadline, ok := f.snap.ProgressDeadline(); ok && f.wasExceeded() && !f.triedSince() {
		if exceeded := now.Add(-deadline); exceeded.Before(since) { // nothing has shown since that it moves again
			since = exceeded
		}
	}
	return since
}

// wasMoving reports whether the set waited for something when the status was last written.
func (f clock) wasMoving() bool {
	switch f.reason {
	case v1beta1.ReasonNewRevision, v1beta1.ReasonRollingUpdate, v1beta1.ReasonScaling, v1beta1.ReasonProgressDeadlineExceeded, v1beta1.ReasonRolledBack, v1beta1.ReasonInvalidTemplate:
		return true
	}
	return false
}

// wasExceeded reports whether the deadline had passed when the status was last written.
func (f clock) wasExceeded() bool {
	stalled := find(f.previous.Conditions, v1beta1.ConditionStalled)
	return f.reason == v1beta1.ReasonProgressDeadlineExceeded || stalled != nil && stalled.Reason == v1beta1.ReasonProgressDeadlineExceeded
}

// triedSince reports whether a pod was created where it is wanted, or its scheduling gates were opened, after the deadline had passed.
// It has its own time.
func (f clock) triedSince() bool {
	exceeded := find(f.previous.Conditions, v1beta1.ConditionProgressing)
	for r := range f.snap.Unsteady() {
		if r.Active() && f.want[r.Revision] > 0 && !podstate.TriedSince(r.Pod).Before(exceeded.LastTransitionTime.Time) {
			return true
		}
	}
	return false
}

// lastChange returns when, by the dates of conditions and pods, progress was last made; false if the target revision has no
// pod.
func (f clock) lastChange() (last time.Time, ok bool) {
	if f.revision(f.target()).active == 0 {
		return time.Time{}, false
	}
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	for _, name := range []string{v1beta1.ConditionReady, v1beta1.ConditionProgressing} {
		if c := find(f.previous.Conditions, name); c != nil {
			later(c.LastTransitionTime.Time)
		}
	}
	for i := range f.snap.Replicas {
		if r := &f.snap.Replicas[i]; r.Active() && f.want[r.Revision] > 0 {
			later(r.Pod.CreationTimestamp.Time)
			later(readySince(r))
		}
	}
	return last, true
}

// readySince returns when the pod of a replica became ready; the zero time if it is not.
func readySince(r *snapshot.Replica) time.Time {
	if !r.Ready {
		return time.Time{}
	}
	return r.ReadySince
}
