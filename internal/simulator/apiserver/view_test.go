// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const ownerIndex = "owner"

func newIndexedView(t *testing.T, s *Store) *View {
	v := NewView(s)
	extract := func(obj client.Object) []string {
		if owner := metav1.GetControllerOf(obj); owner != nil {
			return []string{string(owner.UID)}
		}
		return []string{""}
	}
	if err := v.IndexField(t.Context(), &corev1.Pod{}, ownerIndex, extract); err != nil {
		t.Fatal(err)
	}
	return v
}

func names(t *testing.T, v *View, opts ...client.ListOption) []string {
	t.Helper()
	var pods corev1.PodList
	if err := v.List(t.Context(), &pods, opts...); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}

func TestViewLagsByKind(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := newIndexedView(t, d.Store)
	d.create(aSet())
	d.create(aPod("a"))
	d.create(aPod("b"))
	v.Deliver(Pods)
	if diff := cmp.Diff([]string{"a"}, names(t, v)); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if v.Next(RollSets) == nil || v.Lag(Pods) != 1 {
		t.Errorf("sets pending: %v, pods lag by %d", v.Next(RollSets), v.Lag(Pods))
	}
	got := []string{v.Synced(groupKind(Pods)), v.Synced(groupKind(RollSets))}
	if diff := cmp.Diff([]string{"3", ""}, got); diff != "" {
		t.Errorf("watermarks (-want +got):\n%s", diff)
	}
}

func TestListSelects(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := newIndexedView(t, d.Store)
	set := d.create(aSet())
	d.create(aPod("mine", ownedBy(set)))
	d.create(aPod("orphan"))
	foreign := aPod("foreign")
	foreign.Labels = nil
	d.create(foreign)
	v.Relist(Pods, d.Version())
	tests := map[string]struct {
		opts []client.ListOption
		want []string
	}{
		"all":             {want: []string{"foreign", "mine", "orphan"}},
		"by label":        {opts: []client.ListOption{client.MatchingLabels{"app": "web"}}, want: []string{"mine", "orphan"}},
		"by index":        {opts: []client.ListOption{client.MatchingFields{ownerIndex: string(set.GetUID())}}, want: []string{"mine"}},
		"by both":         {opts: []client.ListOption{client.MatchingFields{ownerIndex: ""}, client.MatchingLabels{"app": "web"}}, want: []string{"orphan"}},
		"other namespace": {opts: []client.ListOption{client.InNamespace("other")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { // not parallel: a view serves one manager, and counts what it lists
			if diff := cmp.Diff(tc.want, names(t, v, tc.opts...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestListCopiesUnlessToldNotTo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := newIndexedView(t, d.Store)
	d.create(aPod("a"))
	v.Deliver(Pods)
	var copied, shared corev1.PodList
	if err := v.List(t.Context(), &copied); err != nil {
		t.Fatal(err)
	}
	if err := v.List(t.Context(), &shared, client.UnsafeDisableDeepCopy); err != nil {
		t.Fatal(err)
	}
	copied.Items[0].Labels["app"] = "changed"
	if got := shared.Items[0].Labels["app"]; got != "web" {
		t.Errorf("the cache says %q", got)
	}
	if &shared.Items[0].Spec.Containers[0] != &MustBe[*corev1.Pod](d.Get(podKey("a"))).Spec.Containers[0] {
		t.Error("the shared object was copied")
	}
}

func TestRelistSkipsWhatHappenedBetween(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := newIndexedView(t, d.Store)
	for _, name := range []string{"kept", "gone", "recreated"} {
		d.create(aPod(name))
		v.Deliver(Pods)
	}
	for _, name := range []string{"gone", "recreated"} {
		if err := d.delete(podKey(name), client.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	d.create(aPod("recreated"))
	d.create(aPod("new"))
	d.create(aPod("brief"))
	if err := d.delete(podKey("brief"), client.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range v.Relist(Pods, d.Version()) {
		switch {
		case e.Old == nil:
			got = append(got, "create "+e.New.GetName())
		case e.New == nil && e.Unknown:
			got = append(got, "delete "+e.Old.GetName())
		case e.Old.GetUID() != e.New.GetUID():
			got = append(got, "replace "+e.New.GetName())
		}
	}
	if diff := cmp.Diff([]string{"delete gone", "create new", "replace recreated"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if v.Next(Pods) != nil {
		t.Error("something is still pending")
	}
}

func TestRelistInThePast(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := newIndexedView(t, d.Store)
	d.create(aPod("a"))
	then := d.Version()
	d.create(aPod("b"))
	if err := d.delete(podKey("a"), client.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	v.Relist(Pods, then)
	if diff := cmp.Diff([]string{"a"}, names(t, v)); diff != "" {
		t.Errorf("then (-want +got):\n%s", diff)
	}
	for v.Next(Pods) != nil {
		v.Deliver(Pods)
	}
	if diff := cmp.Diff([]string{"b"}, names(t, v)); diff != "" {
		t.Errorf("now (-want +got):\n%s", diff)
	}
}

func TestIndexFollowsChanges(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := newIndexedView(t, d.Store)
	set := d.create(aSet())
	pod := d.create(aPod("a"))
	pod.SetOwnerReferences(append(pod.GetOwnerReferences(), ownedBy(set)))
	d.update(pod, "")
	v.Deliver(Pods)
	mine := client.MatchingFields{ownerIndex: string(set.GetUID())}
	if got := names(t, v, mine); len(got) != 0 {
		t.Errorf("found before the event: %v", got)
	}
	v.Deliver(Pods)
	if got := names(t, v, mine); !slices.Equal(got, []string{"a"}) {
		t.Errorf("found %v", got)
	}
}
