// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// pollEvery is the interval of polls of what cannot be watched, and is not measured.
	pollEvery = 50 * time.Millisecond
	// settle is how long the effects of a work count towards it: late writes of status, and clean-up.
	settle = 2 * time.Second
	// workTimeout bounds one work.
	workTimeout = 5 * time.Minute
	// warmUpPods is the size of the set that warms up a controller.
	warmUpPods = 5
)

// session is one competitor at one sequence.
type session struct {
	*bed
	*competitor

	sequence   sequence
	pods       int
	repetition int
	process    process
	namespace  string
	watcher    *watcher
	wishes     []wish
	objects    []client.Object
}

// play starts the competitor, lets it do the works, and stops it. It reports every sample at once.
func (s *session) play(ctx context.Context, works []work, report func(*sample)) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.process, err = s.start(ctx, s.bed); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.process.Stop()) }()
	if err := s.warmUp(ctx); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	for _, w := range works {
		sample, err := s.measure(ctx, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		report(sample)
	}
	return s.clear(ctx)
}

// clear deletes the sets and waits until the garbage collector has deleted their pods.
func (s *session) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, workTimeout, errors.New("it took too long"))
	defer cancel()
	gone := newGoal(0, anyPod)
	s.watcher.aim(gone)
	for _, object := range s.objects {
		if err := s.bed.objects.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return fmt.Errorf("delete set: %w", err)
		}
	}
	if err := s.watcher.await(ctx, s.process.Done()); err != nil {
		return fmt.Errorf("clear up: %w", err)
	}
	return nil
}

// warmUp waits until the controller has created a few pods, in a namespace that is deleted again.
func (s *session) warmUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, workTimeout, errors.New("it took too long"))
	defer cancel()
	warm := *s
	warm.pods = warmUpPods
	warm.sequence.sets = 1
	if err := warm.prepare(ctx); err != nil {
		return err
	}
	goal := newGoal(warmUpPods, isReady)
	warm.watcher.aim(goal)
	if err := warm.createSets(ctx); err != nil {
		return err
	}
	if err := warm.watcher.await(ctx, s.process.Done()); err != nil {
		return err
	}
	return warm.clear(ctx)
}

// prepare creates a namespace, and decides what to wish for in it.
func (s *session) prepare(ctx context.Context) (err error) {
	if s.namespace, err = s.bed.namespace(ctx); err != nil {
		return err
	}
	if s.watcher, err = watchPods(ctx, s.api, s.namespace); err != nil {
		return err
	}
	s.wishes, s.objects = nil, nil
	for i := range s.sequence.sets {
		s.wishes = append(s.wishes, wish{
			name:     types.NamespacedName{Namespace: s.namespace, Name: "web-" + strconv.Itoa(i)},
			replicas: s.pods / s.sequence.sets, image: "app:v1", note: "1", inPlace: s.sequence.inPlace,
		})
	}
	return nil
}

func (s *session) createSets(ctx context.Context) error {
	for _, w := range s.wishes {
		object, err := s.object(w)
		if err != nil {
			return err
		}
		if err := s.bed.objects.Create(ctx, object); err != nil {
			return fmt.Errorf("create set: %w", err)
		}
		s.objects = append(s.objects, object)
	}
	return nil
}

// change patches every set from the object of the old wish to that of the new one.
func (s *session) change(ctx context.Context, by func(*wish)) error {
	for i := range s.wishes {
		before, err := s.object(s.wishes[i])
		if err != nil {
			return err
		}
		by(&s.wishes[i])
		after, err := s.object(s.wishes[i])
		if err != nil {
			return err
		}
		if err := s.bed.objects.Patch(ctx, after, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("patch set: %w", err)
		}
	}
	return nil
}

// measure lets the competitor do one work.
func (s *session) measure(ctx context.Context, w work) (*sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, workTimeout, errors.New("it took too long"))
	defer cancel()
	m, err := s.meter(ctx)
	if err != nil {
		return nil, err
	}
	written, done := w.goals(s)
	s.watcher.aim(written, done)
	begin := time.Now()
	if err := w.ask(ctx, s); err != nil {
		return nil, err
	}
	if err := s.watcher.await(ctx, s.process.Done()); err != nil {
		return nil, err
	}
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	sample := &sample{
		Work: w.name, Competitor: s.name, Pods: s.pods, Sets: s.sequence.sets, Repetition: s.repetition,
		Written: written.at.Sub(begin).Seconds(), Seconds: done.at.Sub(begin).Seconds(),
	}
	return sample, m.finish(ctx, sample)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
