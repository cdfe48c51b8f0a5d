// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/revision"
)

// world is a set and the ControllerRevisions around it.
type world struct {
	set       *v1beta1.RollSet
	revisions map[string]*appsv1.ControllerRevision
	taken     sets.Set[string]
	used      sets.Set[string]
}

// newWorld returns a set that was just created.
func newWorld() *world {
	return &world{
		set: &v1beta1.RollSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "u1", Generation: 1},
			Spec: v1beta1.RollSetSpec{
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:v1"}}},
				},
			},
			Status: v1beta1.RollSetStatus{ObservedGeneration: -1},
		},
		revisions: make(map[string]*appsv1.ControllerRevision),
		taken:     sets.New[string](),
		used:      sets.New[string](),
	}
}

// rolledOut returns a world after rollouts of app:v1 to app:vN, with all but the last one completed.
func rolledOut(t *testing.T, versions int) *world {
	t.Helper()
	w := newWorld()
	for v := 1; v <= versions; v++ {
		if v > 1 {
			w.complete()
			w.image(fmt.Sprintf("app:v%d", v))
		}
		w.settle(t)
	}
	return w
}

// edit changes the spec.
func (w *world) edit(change func(*v1beta1.RollSetSpec)) {
	change(&w.set.Spec)
	w.set.Generation++
}

func (w *world) image(image string) {
	w.edit(func(s *v1beta1.RollSetSpec) { s.Template.Spec.Containers[0].Image = image })
}

func (w *world) scale(replicas int32) {
	w.edit(func(s *v1beta1.RollSetSpec) { s.Replicas = &replicas })
}

// complete finishes the rollout.
func (w *world) complete() {
	w.set.Status.CurrentRevision = w.set.Status.UpdateRevision
	if object, ok := w.revisions[w.set.Status.UpdateRevision]; ok {
		if completed := revision.Prove(object); completed != nil {
			w.revisions[object.Name] = completed
		}
	}
}

// named returns the revision that holds an image.
func (w *world) named(image string) *appsv1.ControllerRevision {
	for _, name := range slices.Sorted(maps.Keys(w.revisions)) {
		if bytes.Contains(w.revisions[name].Data.Raw, []byte(`"`+image+`"`)) {
			return w.revisions[name]
		}
	}
	return nil
}

// tamper puts another image into a revision.
func (w *world) tamper(image, evil string) {
	object := w.named(image)
	object.Data.Raw = bytes.ReplaceAll(object.Data.Raw, []byte(image), []byte(evil))
}

// unusable are the names of the revisions that a resolution makes nothing of.
func (w *world) unusable(r revision.Resolution) (names []string) {
	for name := range w.revisions {
		if _, known := r.Known[name]; !known {
			names = append(names, name)
		}
	}
	return names
}

func (w *world) input() revision.Input {
	return revision.Input{
		Set:       w.set,
		Revisions: slices.Collect(maps.Values(w.revisions)),
		Taken:     w.taken,
		Used:      w.used,
	}
}

// resolve resolves without writing anything.
func (w *world) resolve(t rapid.TB) revision.Resolution {
	t.Helper()
	r, err := revision.Resolve(w.input())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// apply writes what a resolution says.
func (w *world) apply(t rapid.TB, r revision.Resolution) {
	t.Helper()
	for _, name := range r.Prune {
		if _, ok := w.revisions[name]; !ok {
			t.Fatalf("prune %s, which does not exist", name)
		}
		delete(w.revisions, name)
	}
	if r.Create != nil {
		if _, ok := w.revisions[r.Create.Name]; ok || w.taken.Has(r.Create.Name) {
			t.Fatalf("create %s, which exists", r.Create.Name)
		}
		w.revisions[r.Create.Name] = r.Create
	}
	if r.Bump != nil {
		if _, ok := w.revisions[r.Bump.Name]; !ok {
			t.Fatalf("bump %s, which does not exist", r.Bump.Name)
		}
		w.revisions[r.Bump.Name] = r.Bump
	}
	w.set.Status.ObservedGeneration = w.set.Generation
	w.set.Status.CurrentRevision = r.Current.Name
	w.set.Status.UpdateRevision = r.Update.Name
	w.set.Status.CollisionCount = r.CollisionCount
}

func writesNothing(r revision.Resolution) bool {
	return r.Create == nil && r.Bump == nil && len(r.Prune) == 0
}

// settle resolves and applies until nothing is left to write, and returns the last resolution.
func (w *world) settle(t rapid.TB) revision.Resolution {
	t.Helper()
	for range 3 {
		r := w.resolve(t)
		w.apply(t, r)
		if writesNothing(r) {
			return r
		}
	}
	t.Fatal("there is still something to write after three rounds")
	return revision.Resolution{}
}
