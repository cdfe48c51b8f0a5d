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
	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// More than maxTurnsAtOnce turns at one time, and turnsOfPod for each pod that was there before or is wanted, are a hot loop: those
// that a loop makes do not count. A step of the clock below simulator.SameTime
// counts as no step.
const (
	maxTurnsAtOnce = 5000
	turnsOfPod     = 20
)

// World is a simulated cluster with the real controller in it.
type World struct {
	// Cluster reads the store.
	*invariants.Cluster
	*user
	*processes

	// Film is the film strip, one line a write.
	Film *Film
	// Chance chooses the order of turns, and which are skipped; nil means the tidy order without delays.
	Chance *rand.Rand

	clock     *simulator.Clock
	scheduler *scheduler
	kubelets  *kubelets
	storage   *storage
	network   *network
	neighbors *neighbors
	gates     *gates
	refusals  *refusals
	checker   *invariants.Checker
	asleep    map[string]time.Time
	// atOnce is how many turns were taken at this time, and before how many pods there were at the first.
	atOnce, before int
}

// epoch returns the time at which every world begins.
func epoch() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// NewWorld returns a world with one manager. Seed 0 is the tidy order; any other seed chooses a random order.
func NewWorld(ctx context.Context, seed uint64) *World {
	w := &World{clock: simulator.NewClock(epoch()), asleep: make(map[string]time.Time)}
	w.user = &user{world: w, draft: draft()}
	w.processes = &processes{world: w, scheme: apiserver.NewScheme()}
	if seed != 0 {
		w.Chance = rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // chance is to be repeatable here
	}
	w.Cluster = invariants.NewCluster(apiserver.NewStore(w.Now), apiserver.KeyOf(w.draft), w.Now)
	w.scheduler = newScheduler(w)
	w.kubelets = &kubelets{world: w, model: kubelet.Model{StartDelay: time.Second, ReadyDelay: time.Second, TermDelay: time.Second, CrashDelay: 5 * time.Second}}
	w.storage = newStorage(w.Store)
	w.network = &network{world: w}
	w.neighbors = &neighbors{world: w}
	w.gates = &gates{World: w}
	w.refusals = &refusals{}
	w.Film = newFilm(w)
	w.checker = invariants.NewChecker(w.Cluster)
	for _, observe := range []func(*apiserver.Entry){w.scheduler.Observe, w.kubelets.observe, w.storage.Observe, w.Film.observe, w.checker.Observe} {
		w.Store.OnWrite(observe)
	}
	w.AddManager(ctx)
	return w
}

// Now returns the virtual time.
func (w *World) Now() time.Time { return w.clock.Now() }

// turn is an action that a part of the world can take.
type turn struct {
	who, about string
	at         time.Time
	take       func(context.Context) error
}

// turns returns all possible turns, in the tidy order.
func (w *World) turns() []turn {
	var all []turn
	add := func(t turn) {
		if until, ok := w.asleep[t.who+t.about]; ok && until.After(t.at) {
			t.at = until
		}
		all = append(all, t)
	}
	for _, m := range w.Managers {
		w.managerTurns(m, add)
	}
	if w.Store.HasGarbage() {
		add(turn{who: apiserver.GCActor, at: w.Now(), take: func(context.Context) error { return w.Store.Collect() }})
	}
	w.scheduler.turns(add)
	if w.storage.Waits() {
		add(turn{who: actors.ClaimsName, at: w.Now(), take: func(context.Context) error { return w.storage.Step() }})
	}
	w.network.turns(add)
	w.neighbors.turns(add)
	w.gates.turns(add)
	w.kubelets.turns(add)
	return all
}

// step takes one turn that is due before the deadline. It returns false if there is none.
func (w *World) step(ctx context.Context, deadline time.Time) (bool, error) {
	if w.checker.Violation != nil {
		return false, w.checker.Violation
	}
	all, j := w.turns(), judge{w}
	if len(all) == 0 {
		return false, j.checkHeld(deadline)
	}
	due := all[:0:0]
	next := all[0].at
	for _, t := range all {
		if !t.at.After(w.Now()) {
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
		if next.Sub(w.Now()) >= simulator.SameTime {
			w.atOnce = 0
		}
		held := j.checkHeld(next)
		w.clock.SetTime(next)
		return true, errors.Join(held, j.checkHooks(j.waitsForLong))
	}
	if w.atOnce == 0 {
		w.before = len(w.kubelets.pods)
	}
	if w.atOnce++; w.atOnce > maxTurnsAtOnce+turnsOfPod*max(w.before, w.wanted()) {
		return false, fmt.Errorf("hot loop: %d turns at %s", w.atOnce, w.Film.time(w.Now()))
	}
	return true, w.takeOne(ctx, due)
}

// wanted is how many pods the set asks for.
func (w *World) wanted() int {
	if set := w.Set(); set != nil && set.Spec.Replicas != nil {
		return int(*set.Spec.Replicas)
	}
	return 0
}

// takeOne takes the first turn, or a random one. By chance, the owner of the turn sleeps instead.
func (w *World) takeOne(ctx context.Context, due []turn) error {
	if w.Chance == nil {
		return due[0].take(ctx)
	}
	t := due[w.Chance.IntN(len(due))]
	if w.Chance.IntN(4) == 0 {
		w.asleep[t.who+t.about] = w.Now().Add(nap(w.Chance))
		return nil
	}
	if err := t.take(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", t.who, t.about, err)
	}
	return w.checker.Violation
}

// nap returns a random delay: mostly short, and at times long.
func nap(chance *rand.Rand) time.Duration {
	scale := []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second}
	return time.Duration(1+chance.IntN(20)) * scale[chance.IntN(len(scale))] / 10
}

// Run lets d pass.
func (w *World) Run(ctx context.Context, d time.Duration) error {
	deadline := w.Now().Add(d)
	for {
		more, err := w.step(ctx, deadline)
		if err != nil {
			return err
		}
		if !more {
			w.clock.SetTime(deadline)
			w.atOnce = 0
			return nil
		}
	}
}

// A world has settled when no manager has written anything but status for the time quiet. patience bounds the time that
// this may take.
const (
	quiet    = 12 * time.Minute
	patience = 6 * time.Hour
)

// Settle lets time pass until nothing is due, or no manager has written anything but status for the time quiet.
func (w *World) Settle(ctx context.Context) error {
	if err := w.endOverlap(ctx); err != nil {
		return err
	}
	start, writes := w.Now(), len(w.Store.Log())
	for {
		more, err := w.step(ctx, w.lastWrite(start).Add(quiet))
		if err != nil {
			return err
		}
		if !more {
			return w.checker.Violation
		}
		if w.Now().Sub(start) > patience {
			return fmt.Errorf("not settled after %s", patience)
		}
		if len(w.Store.Log())-writes > maxTurnsAtOnce+turnsOfPod*w.wanted() {
			return fmt.Errorf("not settled after %d writes", len(w.Store.Log())-writes)
		}
	}
}

// lastWrite returns the time at which a manager last wrote something other than a status.
func (w *World) lastWrite(start time.Time) time.Time {
	if last := w.checker.LastWrite; last.After(start) {
		return last
	}
	return start
}
