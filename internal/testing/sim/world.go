// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"rollset.dev/rollset/internal/simulator"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/simulator/kubelet"
	"rollset.dev/rollset/internal/testing/sim/invariants"
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
	turns     *turns
	scheduler *scheduler
	kubelets  *kubelets
	storage   *storage
	network   *network
	neighbors *neighbors
	gates     *gates
	refusals  *refusals
	checker   *invariants.Checker
	// crashed is when a manager last crashed.
	crashed time.Time
}

// epoch returns the time at which every world begins.
func epoch() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// NewWorld returns a world with one manager. Seed 0 is the tidy order; any other seed chooses a random order.
func NewWorld(ctx context.Context, seed uint64) *World {
	w := &World{clock: simulator.NewClock(epoch())}
	w.user = &user{world: w, draft: draft()}
	w.turns = &turns{World: w, asleep: make(map[string]time.Time)}
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

// wanted is how many pods the set asks for.
func (w *World) wanted() int {
	if set := w.Set(); set != nil && set.Spec.Replicas != nil {
		return int(*set.Spec.Replicas)
	}
	return 0
}

// Run lets d pass.
func (w *World) Run(ctx context.Context, d time.Duration) error {
	deadline := w.Now().Add(d)
	for {
		more, err := w.turns.step(ctx, deadline)
		if err != nil {
			return err
		}
		if !more {
			w.clock.SetTime(deadline)
			w.turns.atOnce = 0
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
		more, err := w.turns.step(ctx, w.lastWrite(start).Add(quiet))
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

// lastWrite returns the time at which a manager last wrote something other than a status. It is up to quiet later if a manager has crashed
// since: the next one may count its waits from then.
func (w *World) lastWrite(start time.Time) time.Time {
	if last := w.checker.LastWrite; last.After(start) {
		start = last
	}
	if w.crashed.After(start) {
		start = start.Add(min(w.crashed.Sub(start), quiet))
	}
	return start
}
