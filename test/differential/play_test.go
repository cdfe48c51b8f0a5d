// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/testing/patience"
)

const (
	pollEvery = 50 * time.Millisecond
	// moment is the time between what happens and what happens in the midst of it.
	moment = 300 * time.Millisecond
	// A set is at rest if nothing changes for twice as long as it ever took until the next change, and at least for a while: a
	// short one if all that is wished for is there and kubectl says so; a longer one if something is known to hold it; and the
	// longest if nothing is, and it is only slow.
	shortRest, longRest, stuckRest = 400 * time.Millisecond, 2500 * time.Millisecond, 10 * time.Second
	// mostOfGap bounds how long the next change is taken to need.
	mostOfGap = 5 * time.Second
	// mostOfScene bounds a scene on an idle machine.
	mostOfScene = time.Minute
)

// pair is a RollSet, and beside it the set of another kind to which the same happens.
type pair struct {
	history      history
	ours, theirs *side
	wishes       []wish // at the end of each scene
}

func (p *pair) sides() [2]*side { return [2]*side{p.ours, p.theirs} }

// each does the same on both sides at the same time.
func (p *pair) each(do func(*side) error) error {
	done := make(chan error, 1)
	go func() { done <- do(p.ours) }()
	err := do(p.theirs)
	return errors.Join(err, <-done)
}

// play plays a history in the namespaces of a slot.
func (s *slot) play(ctx context.Context, h history) (*pair, error) {
	s.serial++
	w := newWish(h.partner, fmt.Sprintf("web%d", s.serial)).edited(h.opening...)
	p := &pair{history: h}
	p.ours = s.side(0, w, wish.rollSet)
	p.theirs = s.side(1, w, wish.builtin)
	defer s.release()
	if err := errors.Join(p.play(ctx, w), s.clear(ctx, p)); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, h)
	}
	return p, nil
}

func (p *pair) play(ctx context.Context, w wish) error {
	err := p.scene(ctx, w, func() error {
		return p.each(func(s *side) error {
			return insist(ctx, func() error { return client.IgnoreAlreadyExists(s.Create(ctx, s.set)) })
		})
	})
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	for _, scene := range p.history.scenes {
		next := w.edited(autoscaled(scene)...)
		if err := p.scene(ctx, next, func() error { return p.act(ctx, w, scene) }); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(scene, ", "), err)
		}
		w = next
	}
	err = p.scene(ctx, w.undone(), func() error {
		return p.each(func(s *side) error {
			return errors.Join(insist(ctx, func() error { return s.undo(ctx) }), s.edit(ctx, w.undone()))
		})
	})
	if err != nil {
		return fmt.Errorf("ending: %w", err)
	}
	return nil
}

// autoscaled spells what an autoscaler writes as an edit.
func autoscaled(scene []string) []string {
	spelled := slices.Clone(scene)
	for i, act := range spelled {
		if to, ok := strings.CutPrefix(act, "autoscale "); ok {
			spelled[i] = "replicas " + to
		}
	}
	return spelled
}

// scene plays one scene and waits until both sides are at rest.
func (p *pair) scene(ctx context.Context, next wish, act func() error) error {
	p.wishes = append(p.wishes, next)
	for _, s := range p.sides() {
		s.film.begin()
	}
	if err := act(); err != nil {
		return err
	}
	settled := p.settle(ctx)
	for i, s := range p.sides() {
		s.film.end(settled[i], next.version())
	}
	return ctx.Err()
}

// act plays the acts of a scene: edits that follow one another are one write.
func (p *pair) act(ctx context.Context, w wish, scene []string) error {
	return p.each(func(s *side) error {
		w := w
		for i, act := range scene {
			name, argument, _ := strings.Cut(act, " ")
			w = w.edited(autoscaled(scene[i : i+1])...)
			s.film.wishFor(w.replicas)
			v := verbs()[name]
			switch {
			case name == later:
				time.Sleep(moment)
			case v.deed != nil:
				if err := insist(ctx, func() error { return v.deed(ctx, s, argument) }); err != nil {
					return fmt.Errorf("%s: %w", act, err)
				}
			case i+1 == len(scene) || verbs()[verbOf(scene[i+1])].edit == nil:
				if err := s.edit(ctx, w); err != nil {
					return fmt.Errorf("%s: %w", act, err)
				}
			}
		}
		return nil
	})
}

func verbOf(act string) string {
	name, _, _ := strings.Cut(act, " ")
	return name
}

// insist tries again what others, or a busy API server, came in the way of.
func insist(ctx context.Context, try func() error) error {
	for deadline := time.Now().Add(patience.For(mostOfScene)); ; time.Sleep(pollEvery) {
		err := try()
		if err == nil || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// edit writes the difference that the wish makes.
func (s *side) edit(ctx context.Context, w wish) error {
	s.film.wishFor(w.replicas)
	before, next := s.write(s.wish, s), s.write(w, s)
	s.wish = w
	return insist(ctx, func() error { return s.Patch(ctx, next, client.MergeFrom(before)) })
}

// settle waits until both sides are at rest, and returns which came to rest at all.
func (p *pair) settle(ctx context.Context) [2]bool {
	var settled [2]bool
	deadline := time.Now().Add(patience.For(mostOfScene))
	for time.Now().Before(deadline) && ctx.Err() == nil {
		for i, s := range p.sides() {
			settled[i] = s.film.rests(p.isHeld(s))
		}
		if settled == [2]bool{true, true} {
			break
		}
		time.Sleep(pollEvery)
	}
	return settled
}

// isHeld reports whether something that happened may keep a side from what is wished for.
func (p *pair) isHeld(s *side) bool {
	scenes := len(p.wishes) - 1 // the opening is none
	if scenes > len(p.history.scenes) {
		return false // all was undone
	}
	w := p.wishes[scenes]
	if isBad(w.image) || w.paused || w.strategy == "OnDelete" || s.film.holds() {
		return true
	}
	for _, scene := range p.history.scenes[:scenes] {
		if slices.ContainsFunc(scene, func(act string) bool {
			return slices.Contains([]string{"quota", "cordon", "stranger", "mislabel"}, verbOf(act))
		}) {
			return true
		}
	}
	return false
}

// holds reports whether a pod is held, or broken.
func (f *film) holds() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.sorted(), func(m member) bool { return m.held != "" || isBad(m.version) })
}

// rests reports whether nothing has changed for long enough.
func (f *film) rests(held bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	quiet := time.Since(f.changed)
	switch {
	case f.moves() || !f.verdict.observed || quiet < 2*f.gap:
		return false
	case f.whole() && f.verdict.done:
		return quiet > shortRest
	case held:
		return quiet > longRest
	default:
		return quiet > stuckRest
	}
}

// clear deletes all that a pair has left in its namespaces, and waits until it is gone.
func (s *slot) clear(ctx context.Context, p *pair) error {
	return p.each(func(d *side) error { return insist(ctx, func() error { return d.clear(ctx) }) })
}

// clear deletes what is left on a side; an error says that something still is.
func (s *side) clear(ctx context.Context) error {
	err := errors.Join(s.undo(ctx), client.IgnoreNotFound(s.Delete(ctx, s.set, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	for _, kind := range []client.Object{&appsv1.ReplicaSet{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		err = errors.Join(err, s.DeleteAllOf(ctx, kind, client.InNamespace(s.namespace), client.GracePeriodSeconds(0)))
	}
	pods := &corev1.PodList{}
	if err := errors.Join(err, s.List(ctx, pods, client.InNamespace(s.namespace))); err != nil {
		return fmt.Errorf("clear %s: %w", s.namespace, err)
	}
	if len(pods.Items) > 0 {
		time.Sleep(moment)
		return fmt.Errorf("namespace %s is not empty", s.namespace)
	}
	return nil
}
