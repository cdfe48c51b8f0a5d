// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// tournament is a run: every competitor at every work.
type tournament struct {
	options

	bed     *bed
	results *results
}

// play continues when a competitor fails, and returns all errors.
func (t *tournament) play(ctx context.Context) (err error) {
	for _, s := range sequences() {
		if works := t.chosen(s); len(works) > 0 && ctx.Err() == nil {
			err = errors.Join(err, t.repeat(ctx, s, works))
		}
	}
	return err
}

// repeat plays one sequence, with all numbers of pods and as often as requested.
func (t *tournament) repeat(ctx context.Context, s sequence, works []work) (err error) {
	if s.foreign {
		if err := t.bringForeign(ctx); err != nil {
			return fmt.Errorf("create foreign pods: %w", err)
		}
	}
	for repetition := range t.repetitions {
		for _, pods := range t.sizes(s) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err = errors.Join(err, t.round(ctx, session{bed: t.bed, sequence: s, pods: pods, repetition: repetition}, works))
		}
	}
	return err
}

// chosen returns the works of a sequence up to the last requested one, because each needs those before it.
func (o options) chosen(s sequence) []work {
	last := -1
	for i, w := range s.works {
		if slices.Contains(o.works, w.name) {
			last = i
		}
	}
	return s.works[:last+1]
}

func (t *tournament) sizes(s sequence) []int {
	switch {
	case !s.one:
		return t.pods
	case slices.Contains(t.pods, basePods):
		return []int{basePods}
	default:
		return t.pods[len(t.pods)-1:]
	}
}

// round lets one competitor after another do the works. Each round begins with another one.
func (t *tournament) round(ctx context.Context, s session, works []work) (err error) {
	list := competitors()
	for i := range list {
		c := list[(i+s.repetition)%len(list)]
		able := slices.DeleteFunc(slices.Clone(works), func(w work) bool { return w.can != nil && !w.can(c) })
		if len(able) == 0 || !slices.Contains(t.by, c.name) || c.onlyInPlace && !s.sequence.inPlace {
			continue
		}
		s.competitor = c
		failed := s.play(ctx, able, t.report)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s with %d pods: %w", c.name, s.pods, failed))
			say("failed: " + failed.Error())
		}
	}
	return err
}

// report records and prints a sample.
func (t *tournament) report(s *sample) {
	if !slices.Contains(t.works, s.Work) {
		return // it was done for those that follow
	}
	t.results.Samples = append(t.results.Samples, s)
	line := fmt.Sprintf("%-12s %5d  %-16s %6.2f s  %.3f ms/pod", s.Work, s.Pods, s.Competitor, s.Seconds, metricCPU().of(s))
	if s.Foreign > noisy {
		line += fmt.Sprintf("  (others used %.0f%% of the machine)", 100*s.Foreign)
	}
	say(line)
}

// bringForeign fills the cluster with pods that belong to none of the competitors.
func (t *tournament) bringForeign(ctx context.Context) error {
	say(fmt.Sprintf("creating %d foreign pods", foreignCount))
	return t.bed.bringForeign(ctx, wish{image: "app:v1", note: "1"}, foreignCount)
}
