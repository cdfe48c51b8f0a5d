// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"time"

	"k8s.io/utils/clock"
)

// Clock is a clock that does not run: its time is set.
type Clock struct{ now time.Time }

var _ clock.PassiveClock = (*Clock)(nil)

// NewClock returns a clock with a time.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time { return c.now }

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

// SetTime sets the clock.
func (c *Clock) SetTime(t time.Time) { c.now = t }
