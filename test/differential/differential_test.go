// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rollset.dev/rollset/internal/testing/testbed/usage"
)

// recurrences is how many more plays of a history have to show a difference.
const recurrences = 2

// TestPairs plays random histories. A difference that no sentence explains fails if it is there in each of three plays. Then the
// history is shrunk, and both films are printed.
func TestPairs(t *testing.T) {
	c := campaign{T: t, explained: map[string]int{}}
	playing := min(*slots, *pairs)
	c.bed = newBed(t, playing)
	began := time.Now()
	if *replayed != "" {
		c.replay(*replayed)
		return
	}
	var players sync.WaitGroup
	for number := range playing {
		players.Go(func() { c.play(number) })
	}
	players.Wait()
	c.report(time.Since(began))
}

// campaign plays many pairs.
type campaign struct {
	*testing.T

	bed    *bed
	next   atomic.Int64
	played atomic.Int64
	found  atomic.Bool // a difference that recurs
	mu     sync.Mutex
	// explained counts the pairs in which each sentence explained a difference, and vanished differences that did not recur.
	explained map[string]int
	vanished  int
}

// play plays pairs in a slot until all are played, or one has failed.
func (c *campaign) play(number int) {
	ctx := c.Context()
	s, err := c.bed.newSlot(ctx, number)
	if err != nil {
		c.Error(err)
		return
	}
	for *all || !c.found.Load() && !c.Failed() {
		n := c.next.Add(1) - 1
		if n >= int64(*pairs) {
			return
		}
		h, name, err := nth(int(n))
		if err == nil {
			err = c.judge(ctx, s, h, name)
		}
		if err != nil {
			c.Error(err)
			if !*all {
				return
			}
		}
	}
}

// nth returns the history of the n-th pair, and its name: with the first seed, those that are kept come first.
func nth(n int) (h history, name string, err error) {
	if *seed != 1 {
		return draw(*seed + uint64(n)), fmt.Sprintf("seed %d", *seed+uint64(n)), nil
	}
	if kept := kept(); n < len(kept) {
		h, err = parse(kept[n])
		return h, fmt.Sprintf("kept history %d", n+1), err
	}
	n -= len(kept()) - 1
	return draw(uint64(n)), fmt.Sprintf("seed %d", n), nil
}

// judge plays a history and judges both films.
func (c *campaign) judge(ctx context.Context, s *slot, h history, name string) error {
	p, err := s.play(ctx, h)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.played.Add(1)
	c.count(p)
	first, remain := p, unexplained(p)
	if len(remain) == 0 {
		return nil
	}
	for range recurrences {
		if p, err = s.play(ctx, h); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if remain = common(remain, unexplained(p)); len(remain) == 0 {
			c.vanish(name, first)
			return nil
		}
	}
	if *all {
		c.Errorf("%s:\n%s", name, describe(p, remain))
		return nil
	}
	played := c.played.Load()
	if c.found.Swap(true) { // one is enough
		return nil
	}
	small, err := s.shrink(ctx, p)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.Errorf("%s, one of the first %d pairs:\n%s", name, played, describe(small, unexplained(small)))
	return nil
}

// vanish counts a pair whose differences were not there each time.
func (c *campaign) vanish(name string, first *pair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vanished++
	fmt.Fprintf(os.Stderr, "%s, not there each time:\n%s\n", name, describe(first, unexplained(first)))
}

func (c *campaign) count(p *pair) {
	found := map[string]bool{}
	for _, d := range compare(p) {
		found[explain(p, d)] = true
	}
	delete(found, "")
	c.mu.Lock()
	defer c.mu.Unlock()
	for says := range found {
		c.explained[says]++
	}
}

// replay plays one history and prints its films.
func (c *campaign) replay(text string) {
	h, err := parse(text)
	if err != nil {
		c.Fatal(err)
	}
	s, err := c.bed.newSlot(c.Context(), 0)
	if err != nil {
		c.Fatal(err)
	}
	p, err := s.play(c.Context(), h)
	if err != nil {
		c.Fatal(err)
	}
	for _, d := range compare(p) {
		c.Logf("%s\n    %s", d, explain(p, d))
	}
	if c.Log(describe(p, unexplained(p))); len(unexplained(p)) > 0 {
		c.Fail()
	}
}

// report logs the numbers.
func (c *campaign) report(took time.Duration) {
	var cpu time.Duration
	for _, pid := range append(c.bed.PIDs(), c.bed.manager.PID()) {
		used, err := usage.CPU(pid)
		if err != nil {
			c.Error(err)
		}
		cpu += used
	}
	n := c.played.Load()
	c.Logf("%d pairs in %s: %.0f a minute, %s of CPU each; %d differences did not recur",
		n, took.Round(time.Second), float64(n)/took.Minutes(), (cpu / time.Duration(max(1, n))).Round(time.Millisecond), c.vanished)
	for _, says := range slices.SortedFunc(maps.Keys(c.explained), func(a, b string) int { return c.explained[b] - c.explained[a] }) {
		c.Logf("%5d  %s", c.explained[says], says)
	}
}

// shrink leaves out scenes and acts of a history for as long as a difference remains.
func (s *slot) shrink(ctx context.Context, p *pair) (*pair, error) {
	for smaller := true; smaller; {
		smaller = false
		for _, h := range p.history.smaller() {
			q, err := s.play(ctx, h)
			if err != nil {
				return nil, err
			}
			if len(unexplained(q)) > 0 {
				p, smaller = q, true
				break
			}
		}
	}
	return p, nil
}

// smaller returns the histories that lack one scene, or one act.
func (h history) smaller() []history {
	var all []history
	for i := range slices.Backward(h.scenes) {
		h := h
		h.scenes = slices.Delete(slices.Clone(h.scenes), i, i+1)
		all = append(all, h)
	}
	for i, scene := range h.scenes {
		for j := range scene {
			if len(scene) == 1 {
				continue
			}
			h := h
			h.scenes = slices.Clone(h.scenes)
			h.scenes[i] = slices.Delete(slices.Clone(scene), j, j+1)
			all = append(all, h)
		}
	}
	return all
}

// describe prints a pair with both films side by side.
func describe(p *pair, differences []difference) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", p.history)
	for _, d := range differences {
		fmt.Fprintf(&b, "%s\n", d)
	}
	const width = 70
	fmt.Fprintf(&b, "\n%8s  %-*s  %s\n", "", width, "RollSet", p.history.partner)
	frames := slices.Concat(marked(p.ours.film.frames, 0), marked(p.theirs.film.frames, 1))
	slices.SortStableFunc(frames, func(x, y sided) int { return x.at.Compare(y.at) })
	scene, start := 0, p.ours.film.frames[0].at
	for _, f := range frames {
		if f.scene > scene {
			scene = f.scene
			fmt.Fprintf(&b, "-- %s\n", p.title(scene-1))
		}
		columns := [2]string{}
		columns[f.side] = f.text
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%7.1fs  %-*s  %s", f.at.Sub(start).Seconds(), width, columns[0], columns[1]), " "))
	}
	return b.String()
}

// title names a scene.
func (p *pair) title(scene int) string {
	switch {
	case scene == 0:
		return "0: " + strings.Join(p.history.opening, ", ")
	case scene <= len(p.history.scenes):
		return fmt.Sprintf("%d: %s", scene, strings.Join(p.history.scenes[scene-1], ", "))
	default:
		return fmt.Sprintf("%d: nothing is in the way, and the template is a good one", scene)
	}
}

// sided is a frame of one of two films.
type sided struct {
	frame

	side int
}

func marked(frames []frame, side int) []sided {
	all := make([]sided, len(frames))
	for i, f := range frames {
		all[i] = sided{f, side}
	}
	return all
}
