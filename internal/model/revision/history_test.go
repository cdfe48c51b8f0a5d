// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"rollset.dev/rollset/internal/model/revision"
)

// TestHistories applies random actions of users, other owners and forgers to a set, and checks every resolution on the way.
func TestHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.set.Spec.RevisionHistoryLimit = new(rapid.Int32Range(0, 3).Draw(t, "limit"))
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			happen(t, w)
			r := judge(t, w)
			if rapid.Bool().Draw(t, "applied") {
				w.apply(t, r)
			}
		}
		r := w.settle(t)
		judge(t, w)
		if got := r.Update.Template.Spec.Containers[0].Image; got != w.set.Spec.Template.Spec.Containers[0].Image {
			t.Fatalf("settled at %s", got)
		}
	})
}

// happen does one thing that can happen to a set.
func happen(t *rapid.T, w *world) {
	names := slices.Sorted(maps.Keys(w.revisions))
	event := rapid.IntRange(0, 9).Draw(t, "event")
	if event >= 4 && len(names) == 0 {
		return
	}
	switch event {
	case 0, 1:
		w.image(fmt.Sprintf("app:v%d", rapid.IntRange(1, 6).Draw(t, "version")))
	case 2:
		w.scale(rapid.Int32Range(0, 9).Draw(t, "replicas"))
	case 3:
		w.complete()
	case 4:
		w.used.Insert(rapid.SampledFrom(names).Draw(t, "used"))
	case 5:
		w.used.Clear()
	case 6:
		delete(w.revisions, rapid.SampledFrom(names).Draw(t, "lost"))
	case 7:
		object := w.revisions[rapid.SampledFrom(names).Draw(t, "renumbered")]
		object.Revision = rapid.SampledFrom([]int64{-1, 0, 1, 2, math.MaxInt64 - 1, math.MaxInt64}).Draw(t, "number")
	case 8:
		object := w.revisions[rapid.SampledFrom(names).Draw(t, "forged")]
		object.Data.Raw = []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"evil"}]}}}}`)
	case 9:
		name := rapid.SampledFrom(names).Draw(t, "stolen")
		delete(w.revisions, name)
		w.taken.Insert(name)
	}
}

// judge checks what must hold of every resolution.
func judge(t *rapid.T, w *world) revision.Resolution {
	in := w.input()
	before := snapshot(w, in)
	r := w.resolve(t)
	if diff := cmp.Diff(before, snapshot(w, in)); diff != "" {
		t.Fatalf("the input was changed (-before +after):\n%s", diff)
	}
	slices.Reverse(in.Revisions)
	if again, err := revision.Resolve(in); err != nil || !equality.Semantic.DeepEqual(r, again) {
		t.Fatalf("the order matters (-one +other): %v\n%s", err, cmp.Diff(r, again))
	}

	for _, name := range r.Prune {
		_, _, err := revision.Decode(w.revisions[name])
		needed := w.used.Has(name) || name == r.Current.Name || name == r.Update.Name
		if needed && err == nil {
			t.Fatalf("%s is pruned, but needed", name)
		}
	}
	if r.Update.Template == nil {
		t.Fatal("update has no template")
	}
	for _, template := range []any{r.Update.Template, r.Current.Template, r.Create, r.Bump} {
		if text := fmt.Sprintf("%+v", template); strings.Contains(text, "evil") {
			t.Fatalf("a forgery is used: %s", text)
		}
	}
	if w.set.Status.ObservedGeneration == w.set.Generation && r.Update.Name != w.set.Status.UpdateRevision {
		t.Fatalf("update went from %s to %s without an edit", w.set.Status.UpdateRevision, r.Update.Name)
	}
	if old := w.set.Status.CurrentRevision; old != "" && r.Current.Name != old && note(w, r.Current.Name) <= note(w, old) {
		t.Fatalf("current went from %s to %s, which was not proven after it", old, r.Current.Name)
	}
	if collisions(r) > 0 && len(w.taken) == 0 {
		t.Fatalf("%d collisions without another owner", collisions(r))
	}
	return r
}

// note returns the number that a revision had when it was proven last; 0 if none is noted, or if the revision is lost or forged.
func note(w *world, name string) int64 {
	object := w.revisions[name]
	if object == nil {
		return 0
	}
	if _, _, err := revision.Decode(object); err != nil {
		return 0
	}
	number, _ := strconv.ParseInt(object.Annotations[revision.CompletedAnnotation], 10, 64)
	return number
}

func snapshot(w *world, in revision.Input) any {
	var revisions []*appsv1.ControllerRevision
	for _, object := range in.Revisions {
		revisions = append(revisions, object.DeepCopy())
	}
	return []any{w.set.DeepCopy(), revisions, w.taken.Clone(), w.used.Clone()}
}
