// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
)

// liveList is an API server that has some pods, and remembers what it was asked.
type liveList struct {
	client.Reader

	pods  []corev1.Pod
	err   error
	asked []string
}

// List implements client.Reader.
func (l *liveList) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	l.asked = append(l.asked, options.LabelSelector.String())
	list, ok := into.(*corev1.PodList)
	if !ok || options.Limit != 1 && options.Limit != page || options.Namespace != "default" {
		return errors.New("more is asked for than one pod, or a page, of the namespace")
	}
	for i := range l.pods {
		if options.LabelSelector.Matches(labels.Set(l.pods[i].Labels)) && len(list.Items) < int(options.Limit) {
			list.Items = append(list.Items, l.pods[i])
		}
	}
	return l.err
}

// livePod is a pod of the revision web-1.
func livePod(owner metav1.OwnerReference) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web-abcde", Namespace: "default",
		Labels:          map[string]string{"app": "web", v1beta1.RevisionLabel: "web-1"},
		OwnerReferences: []metav1.OwnerReference{owner},
	}}
}

// empty is a view in which a set of 100 pods has none.
func empty(t *testing.T) *view {
	t.Helper()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "set", Generation: 1}}
	set.Spec.Replicas = new(int32(100))
	set.Status.Replicas = 100
	set.Status.Revisions = []v1beta1.RevisionStatus{{Name: "web-1", Replicas: 100}}
	selector, err := labels.Parse("app=web")
	if err != nil {
		t.Fatal(err)
	}
	v := &view{Objects: snapshot.Objects{Set: set, Selector: selector, Now: time.Unix(1000, 0)}, memory: &setMemory{}}
	v.writes = v.memory.attempts.For(&v.Objects)
	return v
}

func TestUnseen(t *testing.T) {
	t.Parallel()
	ours, others := livePod(claims.Owner("web", "set")), livePod(claims.Owner("web", "another"))
	asked := []string{"app=web,controller-revision-hash in (web-1)"}
	tests := map[string]struct {
		live   []corev1.Pod
		err    error
		change func(*view)
		// want is whether the cache is waited for.
		want      bool
		wantAsked []string
	}{
		"the API server has pods that the cache does not show": {live: []corev1.Pod{ours}, want: true, wantAsked: asked},
		"the pods are lost":              {wantAsked: asked},
		"the pods are another set's":     {live: []corev1.Pod{others}, wantAsked: asked},
		"the API server does not answer": {err: errors.New("cut"), wantAsked: asked},
		"the cache shows a pod":          {live: []corev1.Pod{ours}, change: func(v *view) { v.Pods = []*corev1.Pod{&ours} }},
		"the cache has shown a pod once": {live: []corev1.Pod{ours}, change: func(v *view) { v.memory.sawPods = true }},
		"there were none before":         {live: []corev1.Pod{ours}, change: func(v *view) { v.Set.Status.Replicas = 0 }},
		"a small set": {
			live: []corev1.Pod{ours}, change: func(v *view) { v.Set.Spec.Replicas = new(int32(1)) },
			want: true, wantAsked: asked,
		},
		"nobody knows the pods' revisions": {
			live: []corev1.Pod{ours}, change: func(v *view) { v.Set.Status.Revisions = nil },
			want: true, wantAsked: []string{"app=web"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := empty(t)
			if tt.change != nil {
				tt.change(v)
			}
			live := &liveList{pods: tt.live, err: tt.err}
			wait, err := v.unseen(t.Context(), live)
			if !errors.Is(err, tt.err) {
				t.Errorf("unseen fails with %v, want %v", err, tt.err)
			}
			if (wait > 0) != tt.want {
				t.Errorf("unseen = %v, want to wait: %v", wait, tt.want)
			}
			if diff := cmp.Diff(tt.wantAsked, live.asked); diff != "" {
				t.Errorf("selectors asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnshown creates pods in a set that has given out an id whose pod the cache has never shown.
func TestUnshown(t *testing.T) {
	t.Parallel()
	ours, others := livePod(claims.Owner("web", "set")), livePod(claims.Owner("web", "another"))
	creates, deletes := action.Plan{}, action.Plan{}
	creates.Add(action.Create{})
	deletes.Add(action.Delete{Pod: &ours})
	for name, tt := range map[string]struct {
		live   []corev1.Pod
		plan   action.Plan
		issued int64
		// want is whether the cache is waited for, and asks whether the API server is asked.
		want, asks bool
	}{
		"the API server has its pod":   {live: []corev1.Pod{ours}, plan: creates, issued: 1, want: true, asks: true},
		"it has that of another set":   {live: []corev1.Pod{others}, plan: creates, issued: 1, asks: true},
		"nothing is to be created":     {live: []corev1.Pod{ours}, plan: deletes, issued: 1},
		"the set has given out no ids": {live: []corev1.Pod{ours}, plan: creates},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := empty(t)
			v.Set.Status.IssuedIDs = tt.issued
			live := &liveList{pods: tt.live}
			wait, err := v.unshown(t.Context(), live, tt.plan)
			if err != nil || (wait > 0) != tt.want || (len(live.asked) > 0) != tt.asks {
				t.Errorf("unshown = %v, %v after %d questions; want to wait: %t, to ask: %t", wait, err, len(live.asked), tt.want, tt.asks)
			}
		})
	}
}

// TestCatchUp compares the pods of the cache with those of the API server.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	pod := func(change func(*corev1.Pod)) corev1.Pod {
		pod := livePod(claims.Owner("web", "set"))
		pod.UID, pod.ResourceVersion = "a", "7"
		if change != nil {
			change(&pod)
		}
		return pod
	}
	foreign := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} }
	for name, tt := range map[string]struct {
		cached, live []corev1.Pod
		err          error
		// want is how long the set waits with a cache that shows no more.
		want time.Duration
	}{
		"the cache shows what there is":          {cached: []corev1.Pod{pod(nil)}, live: []corev1.Pod{pod(nil)}},
		"a pod was changed":                      {cached: []corev1.Pod{pod(nil)}, live: []corev1.Pod{pod(func(p *corev1.Pod) { p.ResourceVersion = "8" })}, want: expectations.Timeout},
		"a pod was created":                      {live: []corev1.Pod{pod(nil)}, want: expectations.Timeout},
		"a pod of another set was created":       {live: []corev1.Pod{livePod(claims.Owner("web", "another"))}},
		"a pod is gone":                          {cached: []corev1.Pod{pod(nil)}, want: expectations.UnsettledTimeout},
		"a pod that the selector does not match": {cached: []corev1.Pod{pod(foreign)}, live: []corev1.Pod{pod(foreign)}},
		"the API server does not answer":         {cached: []corev1.Pod{pod(nil)}, err: errors.New("cut")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := empty(t)
			now := clocktesting.NewFakePassiveClock(v.Now)
			store := expectations.New(now)
			store.UnsettledCreate("set", "web-lost")
			now.SetTime(v.Now.Add(expectations.UnsettledTimeout))
			for i := range tt.cached {
				v.Pods = append(v.Pods, &tt.cached[i])
			}
			cache := expectations.Cache{Synced: map[schema.GroupKind]string{expectations.PodKind(): "6"}, Pods: v.Pods}
			if met, remaining := store.Met("set", cache); met || remaining > 0 {
				t.Fatalf("Met = %t, %s before the look", met, remaining)
			}
			wait, err := v.catchUp(t.Context(), &liveList{pods: tt.live, err: tt.err}, store)
			if !errors.Is(err, tt.err) || (wait > 0) != (tt.want > 0) {
				t.Errorf("catchUp = %s, %v; want to wait: %t, error %v", wait, err, tt.want > 0, tt.err)
			}
			if met, remaining := store.Met("set", cache); met != (tt.want == 0 && tt.err == nil) || remaining != tt.want {
				t.Errorf("Met = %t, %s after the look, want %s", met, remaining, tt.want)
			}
		})
	}
}

func TestAnEmptyCacheIsCheckedLessAndLessOften(t *testing.T) {
	t.Parallel()
	v := empty(t)
	live := &liveList{pods: []corev1.Pod{livePod(claims.Owner("web", "set"))}}
	look := func() time.Duration {
		t.Helper()
		wait, err := v.unseen(t.Context(), live)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	var waits []time.Duration
	for range 4 {
		wait := look()
		waits = append(waits, wait, look()) // an event in between costs no question
		v.Now = v.Now.Add(wait)
	}
	want := []time.Duration{backoff.Shortest, backoff.Shortest, 2 * backoff.Shortest, 2 * backoff.Shortest, 4 * backoff.Shortest, 4 * backoff.Shortest, 8 * backoff.Shortest, 8 * backoff.Shortest}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if len(live.asked) != 4 {
		t.Errorf("the API server was asked %d times, want 4", len(live.asked))
	}
	v.Pods = []*corev1.Pod{&live.pods[0]}
	if wait := look(); wait != 0 {
		t.Errorf("the cache shows pods, and %v are waited for", wait)
	}
	v.Pods, v.Set.Generation = nil, 2
	if look(); len(live.asked) != 4 {
		t.Error("a cache that has shown pods is checked again")
	}
}

func TestOutdated(t *testing.T) {
	t.Parallel()
	create := action.Plan{Actions: []action.Action{action.Create{ID: "abcde"}}}
	tests := map[string]struct {
		plan   action.Plan
		change func(live *v1beta1.RollSet)
		gone   bool
		// want is whether the cache is waited for, and again whether the API server is asked at the next look as well.
		want, again bool
	}{
		"the cache shows the newest": {plan: create},
		"no pod is made":             {change: func(s *v1beta1.RollSet) { s.ResourceVersion = "8" }, again: true},
		"there is a newer one":       {plan: create, change: func(s *v1beta1.RollSet) { s.ResourceVersion = "8" }, want: true},
		"another set has the name":   {plan: create, change: func(s *v1beta1.RollSet) { s.UID = "successor" }, want: true, again: true},
		"the set is gone":            {plan: create, gone: true, want: true, again: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &step{view: empty(t), snap: &snapshot.Set{}, plan: tt.plan}
			s.Set.ResourceVersion = "7"
			live := showing{set: s.Set.DeepCopy()}
			if tt.change != nil {
				tt.change(live.set)
			}
			if tt.gone {
				live.set = nil
			}
			wait, err := s.outdated(t.Context(), live, expectations.New(clock.RealClock{}))
			if err != nil {
				t.Fatal(err)
			}
			if (wait > 0) != tt.want || s.memory.sawStatus == tt.again {
				t.Errorf("outdated = %v, want to wait: %t; asked for the last time is %t, want %t", wait, tt.want, s.memory.sawStatus, !tt.again)
			}
		})
	}
}

func TestASetThatIsGoneIsAskedForLessAndLessOften(t *testing.T) {
	t.Parallel()
	s := &step{view: empty(t), snap: &snapshot.Set{}, plan: action.Plan{Actions: []action.Action{action.Create{ID: "abcde"}}}}
	gone := &asked{}
	var waits []time.Duration
	for range 4 {
		wait, err := s.outdated(t.Context(), gone, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(waits) > 0 && wait <= waits[len(waits)-1] {
			t.Errorf("waits %v after %v", wait, waits)
		}
		waits = append(waits, wait)
		s.Now = s.Now.Add(wait / 2)
		if left, err := s.outdated(t.Context(), gone, nil); err != nil || left <= 0 || left > wait/2+1 {
			t.Errorf("waits %v (%v) after half of %v", left, err, wait)
		}
		s.Now = s.Now.Add(wait)
	}
	if gone.times != len(waits) {
		t.Errorf("the API server was asked %d times, want %d", gone.times, len(waits))
	}
}

// asked is an API server that has no set, and counts how often it is asked for one.
type asked struct {
	client.Reader

	times int
}

// Get implements client.Reader.
func (a *asked) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	a.times++
	return apierrors.NewNotFound(schema.GroupResource{Resource: "rollsets"}, key.Name)
}
