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
	// it.
	bigPods              = 5000
	smallSets, smallPods = 100, 3
	// editEvery is the time from one edit of a small set to the next.
	editEvery = 100 * time.Millisecond
)

// measureFairness edits small sets while a big one is rolled out. It measures how long the manager takes to send the first
// write for each edit, by the times at which the API server received the edit and the write.
func measureFairness(ctx context.Context, b *bed, percent int) (facts []fact, err error) {
	p, err := startManager(ctx, b, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	small, err := b.newRollSets(ctx, wish{image: "app:v1", note: "1", replicas: smallPods}, smallSets)
	if err != nil {
		return nil, err
	}
	big, err := b.newRollSets(ctx, wish{image: "app:v1", note: "1", replicas: bigPods * percent / 100}, 1)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(small.awaitReady(ctx, p), big.awaitReady(ctx, p)); err != nil {
		return nil, err
	}
	log, err := audit.From(b.AuditLog)
	if err != nil {
		return nil, err
	}
	if err := big.change(ctx, &big.wishes[0], func(w *wish) { w.image = "app:v2" }); err != nil {
		return nil, err
	}
	moved := newGoal(big.wishes[0].replicas, runs("app:v2"))
	big.watcher.aim(moved)
	edits, err := small.editAll(ctx)
	if err != nil {
		return nil, err
	}
	if n := big.watcher.reached(moved); n == moved.count {
		return nil, fmt.Errorf("the rollout of %d pods ended before the last edit", n)
	}
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	took, err := reactions(log, edits)
	if err != nil {
		return nil, err
	}
	const limit = 1
	name := fmt.Sprintf("reaction of small sets beside a rollout of %d pods, ", moved.count)
	return []fact{
		{Name: name + "median", Value: took[len(took)/2], Unit: "s", Limit: limit},
		{Name: name + "99th percentile", Value: took[len(took)*99/100], Unit: "s", Limit: limit},
	}, nil
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
