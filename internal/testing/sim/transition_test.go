// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// bases returns the parts of a spec that cannot change, each with the words that only it knows.
func bases() map[string][]*rapid.Generator[string] {
	ordinals := []*rapid.Generator[string]{
		oneOf("management", "OrderedReady", "Parallel"),
		oneOf("start", "0", "0", "2"),
		oneOf("reserve", "99", "1", "0,3-4"),
		oneOf("whenScaled", "Retain", "Delete"),
	}
	surge := []*rapid.Generator[string]{oneOf("maxSurge", "0", "0", "1", "50%")}
	return map[string][]*rapid.Generator[string]{
		"identity Random":               surge,
		"identity Random\nclaims data":  append(surge, oneOf("whenScaled", "Delete")),
		"identity Ordinal":              ordinals,
		"identity Ordinal\nclaims data": ordinals,
	}
}

// oneOf draws a line with one of the arguments.
func oneOf(word string, args ...string) *rapid.Generator[string] {
	return rapid.Map(rapid.SampledFrom(args), func(arg string) string { return word + " " + arg })
}

// everyWord draws a spec: a value for every field that has a word, so that one spec replaces all of another.
func everyWord(images ...string) []*rapid.Generator[string] {
	return []*rapid.Generator[string]{
		oneOf("replicas", "3", "0", "1", "2", "5"),
		oneOf("image", images...),
		oneOf("env", "COLOR=blue", "COLOR=green"),
		oneOf("annotate", "team=a", "team=b"),
		oneOf("memory", "64Mi", "128Mi"),
		oneOf("strategy", "RollingUpdate", "RollingUpdate", "RollingUpdate", "OnDelete", "Recreate"),
		oneOf("partition", "0", "0", "1", "50%", "99%", "7"),
		oneOf("maxUnavailable", "1", "0", "2", "25%", "100%"),
		oneOf("policy", "Recreate", "InPlaceIfPossible", "InPlaceOnly"),
		oneOf("grace", "0", "2"),
		oneOf("paused", "false", "false", "false", "true"),
		oneOf("minReady", "0", "3"),
		oneOf("history", "10", "0", "1"),
		oneOf("deadline", "600", "20"),
		oneOf("onDeadline", "Hold", "Rollback"),
		oneOf("hook", "none", "none", "preDelete"),
	}
}

// drawSpec draws a line of each generator.
func drawSpec(t *rapid.T, name string, words ...[]*rapid.Generator[string]) string {
	var lines []string
	for _, generators := range words {
		for _, g := range generators {
			lines = append(lines, g.Draw(t, name))
		}
	}
	return strings.Join(lines, "\n")
}

// specOf returns the spec that lines describe.
func specOf(ctx context.Context, lines string) (*v1beta1.RollSetSpec, error) {
	script, err := ParseScript(lines)
	if err != nil {
		return nil, err
	}
	scratch := NewWorld(ctx, 0)
	if err := scratch.Play(ctx, script); err != nil {
		return nil, err
	}
	return &scratch.draft.Spec, nil
}

// become changes the whole spec at once, and lets d pass, or the world settle if d is negative.
func (w *World) become(ctx context.Context, lines string, d time.Duration) error {
	spec, err := specOf(ctx, lines)
	if err != nil {
		return err
	}
	if err := w.Edit(strings.ReplaceAll(lines, "\n", ", "), func(s *v1beta1.RollSetSpec) { *s = *spec.DeepCopy() }); err != nil {
		return err
	}
	w.createSet()
	if d < 0 {
		return w.Settle(ctx)
	}
	return w.Run(ctx, d)
}

// withoutBrakes returns the spec without what keeps pods at an older template on purpose.
func withoutBrakes(lines string) string {
	return lines + "\nstrategy RollingUpdate\npartition 0\npaused false\npolicy InPlaceIfPossible"
}

// transitions is how many a set goes through one after the other, so that it is never the first one that it was.
const transitions = 5

// TestFromEmpty takes a set from any spec to any other one, at rest or in the midst of a rollout, and expects what the
// other one gives when it is the first. In as far as a spec keeps pods at an older template it may show where the set
// comes from; then only how many there are is compared, and the rest as soon as it does so no longer.
func TestFromEmpty(t *testing.T) {
	t.Parallel()
	for base, own := range bases() {
		for _, stop := range []time.Duration{-1, 0, 1500 * time.Millisecond, 2500 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s/%s", strings.ReplaceAll(base, "\n", " "), stop), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					w := NewWorld(t.Context(), rapid.SampledFrom([]uint64{0, 4, 8, 12}).Draw(t, "seed"))
					for range transitions {
						from := base + "\n" + drawSpec(t, "from", own, everyWord("app:v1", "app:v2", "app:slow", "app:broken", "app:missing", "app:broken-crash"))
						to := base + "\n" + drawSpec(t, "to", own, everyWord("app:v1", "app:v2"))
						if err := w.comesTo(t.Context(), from, to, stop); err != nil {
							t.Fatalf("%v\nfrom:\n%s\nto:\n%s", err, from, to)
						}
					}
				})
			})
		}
	}
}

// comesTo compares a set that was another one before with one that is new, as they are and without their brakes.
func (w *World) comesTo(ctx context.Context, from, to string, stop time.Duration) error {
	if err := w.become(ctx, from, stop); err != nil {
		return fmt.Errorf("on the way: %w\n%s", err, w.Film)
	}
	fresh := NewWorld(ctx, 0)
	for _, spec := range []string{to, withoutBrakes(to)} {
		for _, world := range []*World{w, fresh} {
			if err := world.become(ctx, spec, -1); err != nil {
				return fmt.Errorf("%w\n%s", err, world.Film)
			}
			if world.Set().Spec.UpdatePolicy() == v1beta1.InPlaceOnlyPod {
				continue // it may be that nothing can move
			}
			if err := (judge{world}).checkWanted(); err != nil {
				return fmt.Errorf("%w\n%s", err, world.Film)
			}
		}
		if w.Rejected(w.Set()) || !(judge{w}).satisfiable() {
			return nil // a verdict outlives its deadline, and brakes may hold pods that cannot be right
		}
		compare := final.outline
		if spec != to {
			compare = final.state
		}
		if diff := cmp.Diff(compare(final{fresh}), compare(final{w})); diff != "" {
			return fmt.Errorf("from nothing (-), from another spec (+):\n%s%s", diff, w.Film)
		}
	}
	return nil
}

// TestBadTemplateAndBack breaks a set by a template, or by what the cluster refuses it, and takes the change back. The
// set is then as it was, and pods that were right have not been touched, unless a manager saw the change back too late.
func TestBadTemplateAndBack(t *testing.T) {
	t.Parallel()
	bad := map[string][2]string{
		"never ready":    {"", "image app:broken"},
		"image missing":  {"", "image app:missing"},
		"crash loop":     {"", "image app:broken-crash"},
		"fits no node":   {"", "cpu 64"},
		"over the quota": {"quota cpu=1", "cpu 2"},
		"denied":         {"deny", "env COLOR=red"},
	}
	for base, own := range bases() {
		for name, trouble := range bad {
			t.Run(strings.ReplaceAll(base, "\n", " ")+"/"+name, func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					good := base + "\n" + drawSpec(t, "good", own, everyWord("app:v1"))
					stop := rapid.SampledFrom([]time.Duration{-1, 0, 500 * time.Millisecond, 2500 * time.Millisecond}).Draw(t, "stop")
					seed := rapid.SampledFrom([]uint64{0, 4, 8}).Draw(t, "seed")
					if err := recovers(t.Context(), NewWorld(t.Context(), seed), good, trouble, stop); err != nil {
						t.Fatalf("%v\n%s\nthen %s for %s", err, good, trouble, stop)
					}
				})
			})
		}
	}
}

// recovers settles in a good spec, spoils it for a while, and goes back.
func recovers(ctx context.Context, w *World, good string, trouble [2]string, stop time.Duration) error {
	if err := w.become(ctx, good, -1); err != nil {
		return fmt.Errorf("%w\n%s", err, w.Film)
	}
	before, template := final{w}.state(), w.TemplateOf(w.Set().Status.UpdateRevision)
	script, err := ParseScript(trouble[0])
	if err != nil {
		return err
	}
	if err := w.Play(ctx, script); err != nil {
		return err
	}
	if err := w.become(ctx, good+"\n"+trouble[1], stop); err != nil {
		return fmt.Errorf("%w\n%s", err, w.Film)
	}
	right := make(map[string]bool)
	for _, pod := range w.Pods() {
		right[string(pod.UID)] = w.Version(pod) == w.VersionOf(template) && invariants.IsReady(pod) && invariants.IsActive(pod) && !invariants.IsUpdating(pod)
	}
	w.Store.MaxCPU, w.Store.Admission = nil, nil
	mark := len(w.Store.Log())
	if err := w.become(ctx, good, -1); err != nil {
		return fmt.Errorf("%w\n%s", err, w.Film)
	}
	if err := (judge{w}).checkWanted(); err != nil {
		return fmt.Errorf("%w\n%s", err, w.Film)
	}
	for _, e := range w.Store.Log()[mark:] {
		if w.Chance == nil && e.Actor == managerActor && e.Key.Kind == apiserver.Pods && e.Old != nil && right[string(e.Old.GetUID())] {
			return fmt.Errorf("%s, which was right\n%s", e.Write, w.Film)
		}
	}
	if diff := cmp.Diff(before, final{w}.state()); diff != "" {
		return fmt.Errorf("before (-), after (+):\n%s%s", diff, w.Film)
	}
	return nil
}
