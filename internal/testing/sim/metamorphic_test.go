// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// The tests of this file know no rule of the planners. They play a story, and the same story told in another way, and compare.

// tale is a story of a set, and what it cost.
type tale struct {
	*World
	// members is how many pods count at most, and surplus is true if a story scales those above away.
	members int
	surplus bool
	// lowest is how few members were available since the mark, and deletes how many pods managers deleted.
	lowest, deletes int
	marked          bool
}

// tell begins a story in the tidy order.
func tell(ctx context.Context, members int) *tale {
	t := &tale{World: NewWorld(ctx, 0), members: members}
	t.Store.OnWrite(func(e *apiserver.Entry) {
		if !t.marked || e.Key.Kind != apiserver.Pods {
			return
		}
		t.lowest = min(t.lowest, t.serving())
		if e.Old != nil && e.Verb == apiserver.Delete && strings.HasPrefix(e.Actor, managerActor) {
			t.deletes++
		}
	})
	return t
}

// mark begins to count what the story costs.
func (t *tale) mark() { t.marked, t.lowest = true, t.serving() }

// serving counts the available pods. Those with the highest ordinals do not count if a story scales them away.
func (t *tale) serving() int {
	n := 0
	for _, pod := range t.Pods() {
		if index, err := strconv.Atoi(pod.Labels[v1beta1.PodIndexLabel]); t.surplus && err == nil && index >= t.members {
			continue
		}
		if t.Mark(pod) == "+" {
			n++
		}
	}
	return min(n, t.members)
}

// plays lets the lines of a script happen.
func (t *tale) plays(ctx context.Context, lines ...string) error {
	script, err := ParseScript(strings.Join(lines, "\n"))
	if err == nil {
		err = t.Play(ctx, script)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, t.Film.last(60))
	}
	return nil
}

// foundations are sets of all kinds.
func foundations() *rapid.Generator[string] {
	return among("identity Random", "identity Random\nclaims data", "identity Ordinal", "identity Ordinal\nclaims data",
		"identity Ordinal\nmanagement Parallel", "identity Ordinal\nmanagement Parallel\nclaims data")
}

// habits are the fields that a story does not edit.
func habits() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join([]string{
			"maxUnavailable " + among("1", "1", "2", "50%").Draw(t, "maxUnavailable"),
			"policy " + among("Recreate", "InPlaceIfPossible").Draw(t, "policy"),
			"partition " + among("0", "0", "1").Draw(t, "partition"),
			"domains " + among("none", "none", "zone").Draw(t, "domains"),
			"minReady " + among("0", "0", "2").Draw(t, "minReady"),
			"deadline 2147483647",
		}, "\n")
	})
}

// change draws a line of a spec.
func change(t *rapid.T, name string) string {
	return rapid.OneOf(
		oneOf("replicas", "1", "2", "3", "5", "7"),
		oneOf("image", "app:v2", "app:slow", "app:broken"),
		oneOf("env", "A=1"),
		oneOf("memory", "128Mi"),
		oneOf("annotate", "team=a"),
		oneOf("maxUnavailable", "1", "2", "3"),
		oneOf("partition", "0", "1", "2"),
		oneOf("scaleMaxUnavailable", "1", "2"),
		oneOf("paused", "true"),
	).Draw(t, name)
}

// misfortune draws what happens to pods before the edits.
func misfortune(foundation string) *rapid.Generator[string] {
	pod := among("a", "b", "c")
	if strings.Contains(foundation, "Ordinal") {
		pod = number(0, 4)
	}
	return rapid.Custom(func(t *rapid.T) string {
		what := among("", "", "finalize %s", "lose %s", "fail %s", "refuse delete %s forbidden", "image app:v1-more\nrun 1.5s", "image app:v1-more\nrun 2.5s").Draw(t, "misfortune")
		if strings.Contains(what, "%") {
			what = fmt.Sprintf(what, pod.Draw(t, "pod"))
		}
		return what
	})
}

// TestOneEditCostsNoMoreThanTwo changes two fields in one edit, and in two edits. The second of the two comes when the first has
// had its effect. The one edit deletes no more pods, and leaves no fewer available, than the dearer order of the two.
func TestOneEditCostsNoMoreThanTwo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		foundation := foundations().Draw(t, "foundation")
		replicas := rapid.IntRange(2, 7).Draw(t, "replicas")
		base := fmt.Sprintf("%s\nreplicas %d\n%s", foundation, replicas, habits().Draw(t, "habits"))
		before := misfortune(foundation).Draw(t, "before")
		first := change(t, "first")
		second := rapid.Custom(func(t *rapid.T) string { return change(t, "second") }).
			Filter(func(s string) bool { return strings.Fields(s)[0] != strings.Fields(first)[0] }).Draw(t, "other")
		members := replicas
		for _, line := range []string{first, second} {
			if n, ok := strings.CutPrefix(line, "replicas "); ok {
				to, err := strconv.Atoi(n)
				if err != nil {
					t.Fatal(err)
				}
				members = min(members, to)
			}
		}
		costs := func(edits ...string) *tale {
			w := tell(t.Context(), members)
			w.surplus = members < replicas
			if err := w.plays(t.Context(), base, "settle", before); err != nil {
				t.Fatal(err)
			}
			w.mark()
			for _, edit := range edits {
				if err := w.edits(t.Context(), edit); err != nil {
					t.Fatalf("%v\n%s", err, w.Film.last(60))
				}
			}
			return w
		}
		one, two, turned := costs(first+"\n"+second), costs(first, second), costs(second, first)
		if err := one.costsMore(two, turned); err != nil {
			t.Fatal(err)
		}
	})
}

// costsMore returns an error if a story costs more than the dearer of two others.
func (t *tale) costsMore(others ...*tale) error {
	lowest, deletes, films := t.members, 0, t.Film.String()
	for _, other := range others {
		lowest, deletes, films = min(lowest, other.lowest), max(deletes, other.deletes), films+"\n"+other.Film.String()
	}
	switch {
	case t.lowest < lowest:
		return fmt.Errorf("in one edit %d of %d pods are left, in two at least %d\n%s", t.lowest, t.members, lowest, films)
	case t.deletes > deletes:
		return fmt.Errorf("in one edit %d pods are deleted, in two at most %d\n%s", t.deletes, deletes, films)
	default:
		return nil
	}
}

// edits changes fields in one edit, and lets the world settle.
func (t *tale) edits(ctx context.Context, lines string) error {
	script, err := ParseScript(lines)
	if err != nil {
		return err
	}
	scratch := NewWorld(ctx, 0)
	scratch.draft = apiserver.Clone(t.Set())
	if err := scratch.Play(ctx, script); err != nil {
		return err
	}
	if err := t.Edit(strings.ReplaceAll(lines, "\n", ", "), func(s *v1beta1.RollSetSpec) { *s = *scratch.draft.Spec.DeepCopy() }); err != nil {
		return err
	}
	return t.Settle(ctx)
}

// TestOrderOfIndependentEvents lets what has nothing to do with each other happen in two orders. The end is the same.
func TestOrderOfIndependentEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		foundation := foundations().Draw(t, "foundation")
		pods := []string{"a", "b", "c"}
		if strings.Contains(foundation, "Ordinal") {
			pods = []string{"0", "1", "2"}
		}
		base := fmt.Sprintf("%s\nreplicas %d\n%s\nsettle", foundation, rapid.IntRange(3, 6).Draw(t, "replicas"), habits().Draw(t, "habits"))
		all := []string{
			oneOf("replicas", "3", "4", "6").Draw(t, "n"), oneOf("image", "app:v2", "app:slow").Draw(t, "image"), oneOf("maxUnavailable", "1", "2").Draw(t, "m"),
			"annotate team=a", "history 3", "delete " + pods[0], "kill " + pods[1], "fail " + pods[2], "restart", "resync",
			"rewind 9 Pod", "rewind 9 RollSet", "cordon-node a", "neighbors 4 0", "whenDeleted Delete",
		}
		events := rapid.Permutation(all).Draw(t, "events")[:rapid.IntRange(2, 5).Draw(t, "count")]
		others := rapid.Permutation(events).Draw(t, "others")
		pause := "run " + among("0s", "100ms", "1.5s", "20s").Draw(t, "pause")
		var ends [2][]string
		var films [2]string
		for i, order := range [][]string{events, others} {
			w := tell(t.Context(), 0)
			lines := []string{base}
			for _, event := range order {
				lines = append(lines, event, pause)
			}
			if err := w.plays(t.Context(), append(lines, "settle")...); err != nil {
				t.Fatal(err)
			}
			ends[i], films[i] = final{w.World}.state(), w.Film.String()
		}
		if diff := cmp.Diff(ends[0], ends[1]); diff != "" {
			t.Fatalf("two orders of %q:\n%s\n%s\n%s", events, diff, films[0], films[1])
		}
	})
}

// TestScaledUpAndDownAgain scales a set up and down again at any moment. In the end it is as if that had not been; a set with
// ordinals that was at rest has the same pods.
func TestScaledUpAndDownAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		foundation := foundations().Draw(t, "foundation")
		replicas := rapid.IntRange(0, 5).Draw(t, "replicas")
		base := fmt.Sprintf("%s\nreplicas %d\n%s\nsettle", foundation, replicas, habits().Draw(t, "habits"))
		state := among("", "paused true\nimage app:v2", "image app:v2", "image app:v2\nsettle", "image app:broken", "image app:broken\nrun 2m",
			"steps 1 2,pause 100%\nimage app:v2", "steps 1 2,pause 100%\nimage app:v2\nsettle").Draw(t, "state")
		then := "run " + among("0s", "1.5s", "2.5s", "20s", "5m").Draw(t, "then")
		back := among("settle", "run 0s", "run 500ms", "run 1.5s", "run 20s").Draw(t, "back")
		if strings.HasPrefix(state, "steps") {
			back = "run 500ms" // before a pod starts: a step that a larger set has ended is over
		}
		more := replicas + rapid.IntRange(1, 4).Draw(t, "more")
		play := func(lines ...string) *tale {
			w := tell(t.Context(), 0)
			if err := w.plays(t.Context(), append(append([]string{base, state, then}, lines...), "settle")...); err != nil {
				t.Fatal(err)
			}
			return w
		}
		without, with := play(), play(fmt.Sprintf("replicas %d", more), back, fmt.Sprintf("replicas %d", replicas))
		if diff := cmp.Diff(final{without.World}.state(), final{with.World}.state()); diff != "" {
			t.Fatalf("without (-), with (+):\n%s%s\n%s", diff, without.Film, with.Film)
		}
		if state == "" && strings.Contains(foundation, "Ordinal") {
			if diff := cmp.Diff(without.identities(), with.identities()); diff != "" {
				t.Fatalf("other pods:\n%s%s", diff, with.Film)
			}
		}
	})
}

// identities returns the UIDs of all pods.
func (t *tale) identities() []string {
	var uids []string
	for _, pod := range t.Pods() {
		uids = append(uids, string(pod.UID))
	}
	return uids
}

// TestALostStatus empties the status at any moment of a story. The manager writes the same to the same pods afterwards.
func TestALostStatus(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		foundation := foundations().Draw(t, "foundation")
		base := fmt.Sprintf("%s\nreplicas %d\n%s\nsettle", foundation, rapid.IntRange(1, 5).Draw(t, "replicas"), habits().Draw(t, "habits"))
		state := among("", misfortune(foundation).Draw(t, "before"), "image app:v2\nsettle", "paused true\nimage app:v2\nsettle\npaused false", "image app:broken\nrun 5m", "replicas 0\nsettle\nimage app:v2").Draw(t, "state")
		edit := rapid.Custom(func(t *rapid.T) string { return change(t, "change") }).Draw(t, "edit") + "\n" + among("", "replicas 3", "image app:v3", "env A=2").Draw(t, "more")
		kept := tell(t.Context(), 0)
		if err := kept.plays(t.Context(), base, state, edit); err != nil {
			t.Fatal(err)
		}
		begin := kept.Store.Version()
		if err := kept.plays(t.Context(), "settle"); err != nil {
			t.Fatal(err)
		}
		at := rapid.Int64Range(begin, kept.Store.Version()).Draw(t, "at")
		lost := tell(t.Context(), 0)
		if err := lost.plays(t.Context(), base, state, edit); err != nil {
			t.Fatal(err)
		}
		for lost.Store.Version() < at {
			if more, err := lost.turns.step(t.Context(), lost.Now().Add(quiet)); err != nil {
				t.Fatal(err)
			} else if !more {
				break
			}
		}
		if err := lost.plays(t.Context(), "lose-status", "settle"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(kept.podWrites(), lost.podWrites()); diff != "" {
			t.Fatalf("with the status (-), without (+):\n%s%s\n%s", diff, kept.Film.last(60), lost.Film.last(60))
		}
	})
}

// podWrites returns what managers wrote to pods, in this order.
func (t *tale) podWrites() []string {
	var writes []string
	for _, e := range t.Store.Log() {
		if strings.HasPrefix(e.Actor, managerActor) && e.Key.Kind == apiserver.Pods {
			writes = append(writes, e.String())
		}
	}
	return writes
}

// TestNeighborsChangeNothing plays a story beside sets that others edit, in which creates hang, and with surplus pods that cannot
// go. All else is written at the same time as without them.
func TestNeighborsChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.IntRange(1, 4).Draw(t, "members")
		foundation := among("identity Ordinal\nmanagement Parallel", "identity Ordinal\nmanagement Parallel\nclaims data", "identity Ordinal").Draw(t, "foundation")
		base := foundation + "\n" + habits().Draw(t, "habits")
		surplus := rapid.IntRange(0, 2).Draw(t, "surplus")
		neighbors := among("", "neighbors 20 0", "neighbors 0 1").Draw(t, "neighbors")
		stay := among("finalize", "refuse").Draw(t, "stay")
		story := []string{}
		for range rapid.IntRange(1, 4).Draw(t, "length") {
			story = append(story, among("image app:v2", "image app:v3", "image app:broken", "annotate team=a", "env A=2", "delete 0", "fail 0", "kill 0", "specify 0", "run 3s", "run 1m",
				"paused true", "paused false", "partition 1", "partition 0", "maxUnavailable 2").Draw(t, "story"))
		}
		var told [2]*tale
		for i, disturbed := range []bool{false, true} {
			w := tell(t.Context(), 0)
			lines := []string{base, fmt.Sprintf("replicas %d\nrun 10s", members)}
			if disturbed {
				lines = []string{base, fmt.Sprintf("replicas %d\nrun 10s", members+surplus)}
				for n := members; n < members+surplus; n++ {
					lines = append(lines, map[string]string{"finalize": fmt.Sprintf("finalize %d", n), "refuse": fmt.Sprintf("refuse delete %d forbidden", n)}[stay])
				}
				lines = append(lines, neighbors)
			}
			// The surplus pods are given up for long before the story begins.
			lines = append(lines, fmt.Sprintf("replicas %d\nrun 10m", members))
			if err := w.plays(t.Context(), append(append(lines, story...), "run 5m")...); err != nil {
				t.Fatal(err)
			}
			told[i] = w
		}
		if err := told[1].isDisturbed(told[0], members); err != nil {
			t.Fatal(err)
		}
	})
}

// isDisturbed returns an error if members are written otherwise than in another story, or later.
func (t *tale) isDisturbed(other *tale, members int) error {
	without, with := other.times(members), t.times(members)
	for write, at := range with {
		if before, ok := without[write]; !ok || at-before > slack {
			return fmt.Errorf("%s at %s, undisturbed at %s (%t)\n%s\n%s", write, at, before, ok, other.Film, t.Film)
		}
	}
	for write := range without {
		if _, ok := with[write]; !ok {
			return fmt.Errorf("%s is not written\n%s\n%s", write, other.Film, t.Film)
		}
	}
	return nil
}

// times returns when managers wrote to the members.
func (t *tale) times(members int) map[string]time.Duration {
	writes, count := map[string]time.Duration{}, map[string]int{}
	for _, e := range t.Store.Log() {
		if !strings.HasPrefix(e.Actor, managerActor) || e.Key.Kind != apiserver.Pods || e.Key.Namespace != Namespace {
			continue
		}
		index, err := strconv.Atoi(e.Key.Name[strings.LastIndexByte(e.Key.Name, '-')+1:])
		if err != nil || index >= members {
			continue
		}
		count[e.String()]++
		writes[fmt.Sprintf("%s, %d", e.String(), count[e.String()])] = e.At.Sub(epoch())
	}
	return writes
}

// TestTalesThatDiffer plays stories that differ, and expects each comparison to notice.
func TestTalesThatDiffer(t *testing.T) {
	t.Parallel()
	told := func(lines string) *tale {
		w := tell(t.Context(), 3)
		if err := w.plays(t.Context(), "identity Ordinal\nmanagement Parallel\nreplicas 3\nsettle"); err != nil {
			t.Fatal(err)
		}
		w.mark()
		if err := w.plays(t.Context(), lines, "settle"); err != nil {
			t.Fatal(err)
		}
		return w
	}
	quietly, rolling, killed := told("run 1s"), told("image app:v2"), told("kill 0 1")
	surplus := told("replicas 5\nsettle\nreplicas 3")
	for what, notices := range map[string]bool{
		"fewer are left":            killed.costsMore(rolling) != nil,
		"more are deleted":          rolling.costsMore(killed) != nil,
		"surplus goes":              surplus.costsMore(quietly) != nil,
		"other content":             !cmp.Equal(final{rolling.World}.state(), final{quietly.World}.state()),
		"other pods":                !cmp.Equal(killed.identities(), quietly.identities()),
		"other writes":              !cmp.Equal(rolling.podWrites(), quietly.podWrites()),
		"more is written":           rolling.isDisturbed(quietly, 3) != nil,
		"less is written":           quietly.isDisturbed(rolling, 3) != nil,
		"the same is written later": told("run 10s\nimage app:v2").isDisturbed(rolling, 3) != nil,
	} {
		if !notices {
			t.Errorf("not noticed: %s", what)
		}
	}
	if err := errors.Join(quietly.costsMore(quietly), surplus.isDisturbed(quietly, 3)); err != nil {
		t.Error(err)
	}
}
