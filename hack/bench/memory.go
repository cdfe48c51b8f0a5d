// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"rollset.dev/rollset/internal/testing/testbed/audit"
	"rollset.dev/rollset/internal/testing/testbed/usage"
)

const (
	// memorySets and memoryPods are the size of the trial: this many sets of this many pods. memoryForeign is how many
	// foreign pods there are at the end.
	memorySets, memoryPods = 1000, 10
	memoryForeign          = 10000
	// idleTime is how long the idle manager is watched.
	idleTime = 30 * time.Second
	// quietFor is how long nothing may have been written before that.
	quietFor = 5 * time.Second
	mega     = 1e6
)

// memoryTrial is one run of the trial.
type memoryTrial struct {
	bed     *bed
	process process
	sets    *rollSets
	facts   []fact
	// percent is the size, and size its text.
	percent int
	size    string
}

// measureMemory measures what the manager keeps in memory, and what it does when nothing happens.
func measureMemory(ctx context.Context, b *bed, percent int) ([]fact, error) {
	t := &memoryTrial{bed: b, percent: percent}
	t.size = fmt.Sprintf("%d sets of %d pods", memorySets*percent/100, memoryPods)
	var err error
	if t.process, err = startManager(ctx, b); err != nil {
		return nil, err
	}
	defer func() { _ = t.process.Stop() }()
	for _, step := range []func(context.Context) error{t.empty, t.own, t.idle, t.restart, t.foreign, t.nodes} {
		if err := step(ctx); err != nil {
			return t.facts, err
		}
	}
	return t.facts, nil
}

// note adds a fact.
func (t *memoryTrial) note(name string, value float64, unit string, limit float64) {
	t.facts = append(t.facts, fact{Name: name, Value: value, Unit: unit, Limit: limit})
	say(fmt.Sprintf("%s: %.1f %s", name, value, unit))
}

func (t *memoryTrial) noteMemory(name string, limit float64) error {
	rss, err := usage.Memory(t.process.PID())
	t.note("memory of the manager "+name, float64(rss)/mega, "MB", limit)
	return err
}

// empty measures a manager without any sets.
func (t *memoryTrial) empty(ctx context.Context) error {
	if err := sleep(ctx, quietFor); err != nil {
		return err
	}
	return t.noteMemory("with 0 sets", 40)
}

// own adds pods to existing sets. The difference is the cost of the pods.
func (t *memoryTrial) own(ctx context.Context) (err error) {
	if t.sets, err = t.bed.newRollSets(ctx, wish{image: "app:v1", note: "1", sidecar: true}, memorySets*t.percent/100); err != nil {
		return err
	}
	if err := t.sets.awaitReady(ctx, t.process); err != nil {
		return err
	}
	before, err := liveHeap(ctx, t.process)
	if err != nil {
		return err
	}
	err = t.sets.each(ctx, func(ctx context.Context, w *wish) error {
		return t.sets.change(ctx, w, func(w *wish) { w.replicas = memoryPods })
	})
	if err != nil {
		return err
	}
	if err := t.sets.awaitReady(ctx, t.process); err != nil {
		return err
	}
	after, err := liveHeap(ctx, t.process)
	t.note("live heap of the pods of "+t.size, (after-before)/mega, "MB", 90)
	return err
}

// idle measures a manager with nothing to do.
func (t *memoryTrial) idle(ctx context.Context) error {
	if err := t.awaitQuiet(ctx); err != nil {
		return err
	}
	log, err := audit.From(t.bed.AuditLog)
	if err != nil {
		return err
	}
	used, err := cpuDuring(t.process, func() error { return sleep(ctx, idleTime) })
	if err != nil {
		return err
	}
	t.note("CPU of the idle manager with "+t.size, 100*used.Seconds()/idleTime.Seconds(), "% of a core", 1)
	n, err := writes(log)
	t.note("writes of the idle manager with "+t.size, float64(n), "in 30 s", 0)
	return err
}

// awaitQuiet waits until nothing has been written for a while.
func (t *memoryTrial) awaitQuiet(ctx context.Context) error {
	for {
		log, err := audit.From(t.bed.AuditLog)
		if err != nil {
			return err
		}
		if err := sleep(ctx, quietFor); err != nil {
			return err
		}
		if n, err := writes(log); n == 0 || err != nil {
			return err
		}
	}
}

// restart measures a second manager that starts when everything exists.
func (t *memoryTrial) restart(ctx context.Context) error {
	if err := t.noteMemory("with "+t.size+", after creating them", 200); err != nil {
		return err
	}
	if err := t.process.Stop(); err != nil {
		return err
	}
	log, err := audit.From(t.bed.AuditLog)
	if err != nil {
		return err
	}
	begin := time.Now()
	if t.process, err = startManager(ctx, t.bed); err != nil {
		return err
	}
	t.note("restart to ready with "+t.size, time.Since(begin).Seconds(), "s", 10)
	if err := sleep(ctx, idleTime); err != nil {
		return err
	}
	n, err := writes(log)
	if err != nil {
		return err
	}
	t.note("writes after a restart with "+t.size, float64(n), "in 30 s", 0)
	return t.noteMemory("with "+t.size+", after a restart", 200)
}

// foreign adds foreign pods.
func (t *memoryTrial) foreign(ctx context.Context) error {
	before, err := quietHeap(ctx, t.process)
	if err != nil {
		return err
	}
	foreign := memoryForeign * t.percent / 100
	if err := t.bed.bringForeign(ctx, wish{image: "app:v1", note: "1", sidecar: true}, foreign); err != nil {
		return err
	}
	after, err := quietHeap(ctx, t.process)
	t.note(fmt.Sprintf("live heap of %d foreign pods", foreign), (after-before)/mega, "MB", 20)
	return err
}

// busyPart is the divisor of a core that separates work from idling: a manager that uses less than this part has nothing to do.
const busyPart = 20

// quietHeap waits until the manager has nothing to do, lets it collect its garbage, and returns what is in use then, in bytes.
func quietHeap(ctx context.Context, p process) (float64, error) {
	for {
		used, err := cpuDuring(p, func() error { return sleep(ctx, quietFor) })
		if err != nil {
			return 0, err
		}
		if used < quietFor/busyPart {
			break
		}
	}
	if err := collect(ctx, p); err != nil {
		return 0, err
	}
	_, live, err := collections(ctx, p)
	return live, err
}

// liveHeap returns what the garbage collector found in use, in bytes, with what was allocated meanwhile. It forces no collection,
// because resident memory is measured later. It waits for two collections. The second began after the call. Requests for
// metrics allocate enough to cause them.
func liveHeap(ctx context.Context, p process) (float64, error) {
	begun := 0.0
	for {
		cycles, live, err := collections(ctx, p)
		if err != nil {
			return 0, err
		}
		if begun == 0 {
			begun = cycles
		}
		if cycles >= begun+2 {
			return live, nil
		}
	}
}

// collections returns how often the garbage collector has run, and what it last found in use, in bytes.
func collections(ctx context.Context, p process) (cycles, live float64, err error) {
	const nameOfCycles, nameOfLive = "go_gc_cycles_total_gc_cycles_total", "go_gc_heap_live_bytes"
	families, err := scrape(ctx, p)
	if err != nil {
		return 0, 0, err
	}
	if len(families[nameOfCycles].GetMetric()) == 0 || len(families[nameOfLive].GetMetric()) == 0 {
		return 0, 0, fmt.Errorf("the metrics lack %s or %s", nameOfCycles, nameOfLive)
	}
	return families[nameOfCycles].GetMetric()[0].GetCounter().GetValue(), families[nameOfLive].GetMetric()[0].GetGauge().GetValue(), nil
}
