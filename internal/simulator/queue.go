// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"slices"
	"time"

	"k8s.io/utils/clock"

	"rollset.dev/rollset/internal/controller/watch"
)

// workers is how many sets a manager works on at a time. It needs more than one only for those whose writes hang.
const workers = 20

// Queue is the line of the real manager on a clock that does not run.
type Queue struct {
	*watch.Line

	timers *timers
}

// NewQueue returns an empty queue.
func NewQueue(c clock.PassiveClock) *Queue {
	t := &timers{passive: c}
	return &Queue{Line: watch.NewLine("", workers, t), timers: t}
}

// Next returns the time at which the first set may be taken. If that is now, Get does not wait.
func (q *Queue) Next() (at time.Time, ok bool) {
	q.timers.fire()
	if q.Len() > 0 {
		return q.timers.Now(), true
	}
	return q.timers.next()
}

// AfterFunc calls a function when a duration has passed.
func (q *Queue) AfterFunc(d time.Duration, do func()) { q.timers.AfterFunc(d, do) }

// timers is the clock of a queue. Its timers run when fire is called.
type timers struct {
	clock.WithTickerAndDelayedExecution // the queue uses nothing else of it

	passive clock.PassiveClock
	waiting []*timer
}

type timer struct {
	clock.Timer // the queue only stops it

	of *timers
	at time.Time
	do func()
}

// Now implements clock.PassiveClock.
func (t *timers) Now() time.Time { return t.passive.Now() }

// AfterFunc implements clock.WithDelayedExecution.
func (t *timers) AfterFunc(d time.Duration, do func()) clock.Timer {
	set := &timer{of: t, at: t.Now().Add(d), do: do}
	t.waiting = append(t.waiting, set)
	return set
}

// Stop implements clock.Timer.
func (t *timer) Stop() bool {
	before := len(t.of.waiting)
	t.of.waiting = slices.DeleteFunc(t.of.waiting, func(other *timer) bool { return other == t })
	return len(t.of.waiting) < before
}

// next returns the time of the first timer.
func (t *timers) next() (at time.Time, ok bool) {
	for _, timer := range t.waiting {
		if !ok || timer.at.Before(at) {
			at, ok = timer.at, true
		}
	}
	return at, ok
}

// fire runs the timers that are due, the first one first.
func (t *timers) fire() {
	for {
		at, ok := t.next()
		if !ok || at.After(t.Now()) {
			return
		}
		first := t.waiting[slices.IndexFunc(t.waiting, func(timer *timer) bool { return timer.at.Equal(at) })]
		first.Stop()
		first.do()
	}
}
