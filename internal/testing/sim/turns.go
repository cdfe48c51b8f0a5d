// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/simulator/actors"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// More than maxTurnsAtOnce turns at one time, and turnsOfPod for each pod that was there before or is wanted, are a hot loop: those
// that a loop makes do not count. A step of the clock below simulator.SameTime counts as no step.
const (
	maxTurnsAtOnce = 5000
	turnsOfPod     = 20
)

// turn is an action that a part of the world can take.
type turn struct {
	who, about string
	at         time.Time
	take       func(context.Context) error
}

// turns lets the parts of a world take their turns, one after the other.
type turns struct {
	*World

	// asleep is until when a part takes no turn, by its name and what the turn is about.
	asleep map[string]time.Time
	// atOnce is how many turns were taken at this time, and before how many pods there were at the first.
	atOnce, before int
}

// all returns all possible turns, in the tidy order.
func (ts *turns) all() []turn {
	var all []turn
	add := func(t turn) {
		if until, ok := ts.asleep[t.who+t.about]; ok && until.After(t.at) {
			t.at = until
		}
		all = append(all, t)
	}
	for _, m := range ts.Managers {
		ts.managerTurns(m, add)
	}
	if ts.Store.HasGarbage() {
		add(turn{who: apiserver.GCActor, at: ts.Now(), take: func(context.Context) error { return ts.Store.Collect() }})
	}
	ts.scheduler.turns(add)
	if ts.storage.Waits() {
		add(turn{who: actors.ClaimsName, at: ts.Now(), take: func(context.Context) error { return ts.storage.Step() }})
	}
	ts.network.turns(add)
	ts.neighbors.turns(add)
	ts.gates.turns(add)
	ts.kubelets.turns(add)
	return all
}

// step takes one turn that is due before the deadline. It returns false if there is none.
func (ts *turns) step(ctx context.Context, deadline time.Time) (bool, error) {
	if ts.checker.Violation != nil {
		return false, ts.checker.Violation
	}
	all, j := ts.all(), judge{ts.World}
	if len(all) == 0 {
		return false, j.checkHeld(deadline)
	}
	due := all[:0:0]
	next := all[0].at
	for _, t := range all {
		if !t.at.After(ts.Now()) {
			due = append(due, t)
		}
		if t.at.Before(next) {
			next = t.at
		}
	}
	if len(due) == 0 {
		if next.After(deadline) {
			return false, j.checkHeld(deadline)
		}
		if next.Sub(ts.Now()) >= simulator.SameTime {
			ts.atOnce = 0
		}
		held := j.checkHeld(next)
		ts.clock.SetTime(next)
		return true, errors.Join(held, j.checkHooks(j.waitsForLong))
	}
	if ts.atOnce == 0 {
		ts.before = len(ts.kubelets.pods)
	}
	if ts.atOnce++; ts.atOnce > maxTurnsAtOnce+turnsOfPod*max(ts.before, ts.wanted()) {
		return false, fmt.Errorf("hot loop: %d turns at %s", ts.atOnce, ts.Film.time(ts.Now()))
	}
	return true, ts.takeOne(ctx, due)
}

// takeOne takes the first turn, or a random one. By chance, the owner of the turn sleeps instead.
func (ts *turns) takeOne(ctx context.Context, due []turn) error {
	if ts.Chance == nil {
		return due[0].take(ctx)
	}
	t := due[ts.Chance.IntN(len(due))]
	if ts.Chance.IntN(4) == 0 {
		ts.asleep[t.who+t.about] = ts.Now().Add(nap(ts.Chance))
		return nil
	}
	if err := t.take(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", t.who, t.about, err)
	}
	return ts.checker.Violation
}

// nap returns a random delay: mostly short, and at times long.
func nap(chance *rand.Rand) time.Duration {
	scale := []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second}
	return time.Duration(1+chance.IntN(20)) * scale[chance.IntN(len(scale))] / 10
}
