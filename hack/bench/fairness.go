// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/testing/testbed/audit"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

const (
	// bigPods is the size of the set that is rolled out. smallSets and smallPods are the number and size of the sets beside
	// it, and burstPods is the size of as many sets that come all at once.
	bigPods                         = 10_000
	smallSets, smallPods, burstPods = 1000, 3, 10
	// editEvery is the time from one edit of a small set to the next.
	editEvery = 20 * time.Millisecond
	// longestReaction is the limit of a reaction, in seconds, and mostStatus that of the writes of a set's status, in a second.
	longestReaction, mostStatus = 1, 1
)

// fairnessTrial is a run of the trial of fairness.
type fairnessTrial struct {
	bed        *bed
	process    process
	percent    int
	small, big *rollSets
	facts      []fact
}

// measureFairness edits small sets while a big one is rolled out, and while as many new sets come. It measures how long the
// manager takes to send the first write for each edit, by the times at which the edit was sent and the API server received the
// write, and how often it writes a status.
func measureFairness(ctx context.Context, b *bed, percent int) (facts []fact, err error) {
	p, err := startManager(ctx, b, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	t := &fairnessTrial{bed: b, process: p, percent: percent}
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	log, err := audit.From(b.AuditLog)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(t.besideRollout(ctx), t.besideBurst(ctx)); err != nil {
		return nil, err
	}
	return t.facts, t.noteStatus(log)
}

// prepare creates the sets, and waits until their pods are ready.
func (t *fairnessTrial) prepare(ctx context.Context) (err error) {
	small := wish{image: "app:v1", note: "1", replicas: smallPods}
	if t.small, err = t.bed.newRollSets(ctx, small, smallSets*t.percent/100); err != nil {
		return err
	}
	if t.big, err = t.bed.newRollSets(ctx, wish{image: "app:v1", note: "1", replicas: bigPods * t.percent / 100}, 1); err != nil {
		return err
	}
	return errors.Join(t.small.awaitReady(ctx, t.process), t.big.awaitReady(ctx, t.process))
}

// besideRollout edits the small sets while the big one is rolled out.
func (t *fairnessTrial) besideRollout(ctx context.Context) error {
	big := &t.big.wishes[0]
	moved := newGoal(big.replicas, runs("app:v2"))
	t.big.watcher.aim(moved)
	if err := t.big.change(ctx, big, func(w *wish) { w.image = "app:v2" }); err != nil {
		return err
	}
	err := t.edit(ctx, fmt.Sprintf("a rollout of %d pods", moved.count), func() error {
		if n := t.big.watcher.reached(moved); n == moved.count {
			return fmt.Errorf("the rollout of %d pods ended before the last edit", n)
		}
		return nil
	})
	return errors.Join(err, t.big.watcher.await(ctx, t.process.Done()))
}

// besideBurst edits the small sets while new sets come, all at once.
func (t *fairnessTrial) besideBurst(ctx context.Context) error {
	start := time.Now()
	burst, err := t.bed.newRollSets(ctx, wish{image: "app:v1", note: "1", replicas: burstPods}, smallSets*t.percent/100)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d new sets of %d pods", len(burst.wishes), burstPods)
	if err := t.edit(ctx, name, func() error { return nil }); err != nil {
		return err
	}
	err = burst.awaitReady(ctx, t.process)
	t.facts = append(t.facts, fact{Name: name + ", until all are ready", Value: time.Since(start).Seconds(), Unit: "s", Limit: noLimit})
	return err
}

// edit edits the small sets and notes how long each of them waited for a write. It fails if the check does after the last edit.
func (t *fairnessTrial) edit(ctx context.Context, beside string, check func() error) error {
	log, err := audit.From(t.bed.AuditLog)
	if err != nil {
		return err
	}
	edits, err := t.small.editAll(ctx)
	if err := errors.Join(err, check(), sleep(ctx, settle)); err != nil {
		return err
	}
	took, err := reactions(log, edits)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("reaction of %d small sets beside %s, ", len(took), beside)
	t.facts = append(t.facts,
		fact{Name: name + "median", Value: took[len(took)/2], Unit: "s", Limit: longestReaction},
		fact{Name: name + "99th percentile", Value: took[len(took)*99/100], Unit: "s", Limit: longestReaction})
	return nil
}

// noteStatus notes how often the status of a set was written at most, in any ten seconds.
func (t *fairnessTrial) noteStatus(log audit.Log) error {
	requests, err := log.Requests(manager.User)
	if err != nil {
		return err
	}
	const window = 10 * time.Second
	most, writes := 0, map[string][]time.Time{}
	for _, r := range requests {
		if r.Resource != "rollsets/status" {
			continue
		}
		set := r.Namespace + "/" + r.Name
		recent := append(slices.DeleteFunc(writes[set], func(at time.Time) bool { return r.At.Sub(at) >= window }), r.At)
		writes[set], most = recent, max(most, len(recent))
	}
	t.facts = append(t.facts, fact{
		Name: "writes of one set's status, a second, in the busiest ten", Value: float64(most) / window.Seconds(), Unit: "1/s", Limit: mostStatus,
	})
	return nil
}

// editAll scales every set up by one pod, one set after another, and returns when.
func (s *rollSets) editAll(ctx context.Context) (map[string]time.Time, error) {
	edits := map[string]time.Time{}
	for i := range s.wishes {
		w := &s.wishes[i]
		edits[w.name.String()] = time.Now()
		if err := s.change(ctx, w, func(w *wish) { w.replicas++ }); err != nil {
			return nil, err
		}
		if err := sleep(ctx, editEvery); err != nil {
			return nil, err
		}
	}
	return edits, nil
}

// reactions returns the times from the edits of sets to the first pods created for them, in seconds, sorted.
func reactions(log audit.Log, edits map[string]time.Time) (took []float64, err error) {
	requests, err := log.Requests(manager.User)
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		if r.Verb != "create" || r.Resource != string(corev1.ResourcePods) {
			continue
		}
		set := r.Namespace + "/" + r.Name[:max(0, strings.LastIndexByte(r.Name, '-'))]
		if edit, ok := edits[set]; ok {
			took = append(took, r.At.Sub(edit).Seconds())
			delete(edits, set)
		}
	}
	if len(edits) > 0 {
		return nil, fmt.Errorf("nothing was written for %d sets", len(edits))
	}
	slices.Sort(took)
	return took, nil
}
