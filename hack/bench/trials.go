// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed/audit"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

const (
	trialMemory    = "memory"
	trialNeighbors = "neighbors"
	// trialTimeout bounds a trial.
	trialTimeout = time.Hour
	// editors is how many sets are created or changed at a time.
	editors = 16
)

// trial measures something about the manager separately.
type trial struct {
	name string
	// run measures. percent is the size of the trial.
	run func(ctx context.Context, percent int) ([]fact, error)
}

func trials() []trial {
	return []trial{{trialMemory, onBed(measureMemory)}, {trialNeighbors, onBed(measureNeighbors)}}
}

// onBed gives a trial its own cluster.
func onBed(run func(ctx context.Context, b *bed, percent int) ([]fact, error)) func(context.Context, int) ([]fact, error) {
	return func(ctx context.Context, percent int) (facts []fact, err error) {
		bed, err := newBed(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, bed.Stop()) }()
		return run(ctx, bed, percent)
	}
}

// try runs the chosen trials.
func (o options) try(ctx context.Context, r *results) (err error) {
	for _, t := range trials() {
		if !slices.Contains(o.works, t.name) || ctx.Err() != nil {
			continue
		}
		say("trial: " + t.name)
		facts, failed := o.tryOne(ctx, t)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", t.name, failed))
		}
		r.Facts = append(r.Facts, facts...)
	}
	return err
}

func (o options) tryOne(ctx context.Context, t trial) ([]fact, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, trialTimeout, errors.New("it took too long"))
	defer cancel()
	return t.run(ctx, o.percent)
}

// rollSets are some sets in one namespace.
type rollSets struct {
	bed     *bed
	watcher *watcher
	wishes  []wish
}

// newRollSets creates sets, numbered from zero, in a new namespace that is watched until the context ends.
func (b *bed) newRollSets(ctx context.Context, w wish, count int) (*rollSets, error) {
	namespace, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	return b.newRollSetsIn(ctx, namespace, w, count)
}

// newRollSetsIn creates sets, numbered from zero, in a namespace without pods that is watched until the context ends.
func (b *bed) newRollSetsIn(ctx context.Context, namespace string, w wish, count int) (_ *rollSets, err error) {
	s := &rollSets{bed: b}
	if s.watcher, err = watchPods(ctx, b.api, namespace); err != nil {
		return nil, err
	}
	for i := range count {
		w.name = types.NamespacedName{Namespace: namespace, Name: "set-" + strconv.Itoa(i)}
		s.wishes = append(s.wishes, w)
	}
	return s, s.each(ctx, func(ctx context.Context, w *wish) error { return b.objects.Create(ctx, w.newRollSet()) })
}

func (s *rollSets) each(ctx context.Context, do func(context.Context, *wish) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(editors)
	for i := range s.wishes {
		group.Go(func() error { return do(ctx, &s.wishes[i]) })
	}
	return group.Wait()
}

// change patches one set.
func (s *rollSets) change(ctx context.Context, w *wish, by func(*wish)) error {
	before := w.newRollSet()
	by(w)
	return s.bed.objects.Patch(ctx, w.newRollSet(), client.MergeFrom(before))
}

// awaitReady waits until all pods are ready, and then until the status of all sets shows it.
func (s *rollSets) awaitReady(ctx context.Context, p process) error {
	pods := 0
	for _, w := range s.wishes {
		pods += w.replicas
	}
	s.watcher.aim(newGoal(pods, isReady))
	if err := s.watcher.await(ctx, p.Done()); err != nil {
		return err
	}
	for {
		sets := &v1beta1.RollSetList{}
		if err := s.bed.objects.List(ctx, sets, client.InNamespace(s.wishes[0].name.Namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(sets.Items, func(set v1beta1.RollSet) bool {
			return set.Status.ObservedGeneration != set.Generation || !meta.IsStatusConditionTrue(set.Status.Conditions, "Ready")
		}) {
			return nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// writes returns what the manager has written since a position in the audit log.
func writes(log audit.Log) (n int, err error) {
	requests, err := log.Requests(manager.User)
	for _, r := range requests {
		if r.Verb != "get" && r.Verb != "list" {
			n++
		}
	}
	return n, err
}
