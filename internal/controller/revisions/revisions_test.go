// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/settled"
)

// liveSet is an API server that has a set, or answers with an error.
type liveSet struct {
	client.Reader

	set *v1beta1.RollSet
	err error
}

// Get implements client.Reader.
func (l liveSet) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if l.err == nil {
		l.set.DeepCopyInto(into.(*v1beta1.RollSet)) //nolint:forcetypeassert // only sets are asked for
	}
	return l.err
}

func TestIsNewest(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	for name, test := range map[string]struct {
		change  func(*v1beta1.RollSet)
		err     error
		want    bool
		wantErr error
		// unmet is how many sets have expectations afterwards.
		unmet int
	}{
		"the same":                      {want: true},
		"another spec":                  {change: func(s *v1beta1.RollSet) { s.Generation++ }, unmet: 1},
		"a user asked to give it up":    {change: func(s *v1beta1.RollSet) { s.Annotations = map[string]string{v1beta1.AbortAnnotation: "x"} }, unmet: 1},
		"another set of this name":      {change: func(s *v1beta1.RollSet) { s.UID = "successor" }},
		"gone":                          {err: apierrors.NewNotFound(schema.GroupResource{Resource: "rollsets"}, "web")},
		"the API server did not answer": {err: cut, wantErr: cut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := settled.Set(1)
			live := set.DeepCopy()
			live.ResourceVersion = "7"
			if test.change != nil {
				test.change(live)
			}
			c := &Control{Live: liveSet{set: live, err: test.err}, Expectations: expectations.New(clock.RealClock{})}
			got, err := c.isNewest(t.Context(), set)
			if got != test.want || !errors.Is(err, test.wantErr) {
				t.Errorf("isNewest = %t, %v; want %t, %v", got, err, test.want, test.wantErr)
			}
			if unmet := c.Expectations.Unmet(); unmet != test.unmet {
				t.Errorf("%d sets with expectations, want %d", unmet, test.unmet)
			}
		})
	}
}

// TestRecordedAfterRefusal sees a revision in the cache that the API server refused before. It no longer counts as refused.
func TestRecordedAfterRefusal(t *testing.T) {
	t.Parallel()
	objects := &snapshot.Objects{Set: settled.Set(1), Now: time.Unix(1_000, 0)}
	decoder := &revision.Decoder{}
	in := revision.Input{Set: objects.Set, Taken: sets.New[string](), Used: sets.New[string](), Decode: decoder.Decode, KeepsClaims: decoder.KeepsClaims}
	first, err := revision.Resolve(in)
	if err != nil {
		t.Fatal(err)
	}
	first.Create.UID = "1"
	in.Revisions = []*appsv1.ControllerRevision{first.Create}
	objects.Revisions = in.Revisions
	v := &Look{Objects: objects, Writes: (&backoff.Table{}).For(objects), Memory: &Memory{}}
	k := attempt.Key{Verb: backoff.CreatingRevision, Object: first.Create.Name}
	v.Writes.Failed(k, apierrors.NewForbidden(schema.GroupResource{Resource: "controllerrevisions"}, first.Create.Name, errors.New("denied")))
	if v.Writes.Wait(k) == 0 {
		t.Fatal("the refusal counts for nothing")
	}
	c := &Control{Live: liveRevision{revision: first.Create}, Expectations: expectations.New(clock.RealClock{})}
	if _, _, err := c.Resolve(t.Context(), v, in); err != nil {
		t.Fatal(err)
	}
	if wait := v.Writes.Wait(k); wait != 0 {
		t.Errorf("it counts as refused for %s", wait)
	}
}

// TestUnwritten remembers a proof for one object with one number only. The same template may come again later, unproven.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	of := func(uid types.UID, number int64) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: uid}, Revision: number}
	}
	m := Memory{proven: of("a", 1)}
	for seen, want := range map[*appsv1.ControllerRevision]string{of("a", 1): "web-1", of("a", 3): "", of("b", 1): ""} {
		if got := m.unwritten([]*appsv1.ControllerRevision{seen}); got != want {
			t.Errorf("%s with number %d: %q, want %q", seen.UID, seen.Revision, got, want)
		}
	}
}

// TestPrune deletes a revision as it was seen. One that was given away since is kept.
func TestPrune(t *testing.T) {
	t.Parallel()
	for given, deleted := range map[bool]bool{false: true, true: false} {
		clock := clocktesting.NewFakePassiveClock(time.Unix(1_000, 0))
		api := apiserver.NewClient(apiserver.NewView(apiserver.NewStore(clock.Now)), "user", apiserver.NewScheme())
		seen := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1"}, Revision: 1}
		if err := api.Create(t.Context(), seen); err != nil {
			t.Fatal(err)
		}
		if given {
			now := seen.DeepCopy()
			now.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "other", UID: "other", Controller: new(true)}}
			if err := api.Update(t.Context(), now); err != nil {
				t.Fatal(err)
			}
		}
		objects := &snapshot.Objects{Set: settled.Set(1), Revisions: []*appsv1.ControllerRevision{seen}}
		v := &Look{Objects: objects, Writes: (&backoff.Table{}).For(objects), Memory: &Memory{}}
		(&Control{Client: api}).Prune(t.Context(), v, []string{"web-1"})
		if got := v.Memory.pruned[seen.UID] != ""; got != deleted {
			t.Errorf("given away %t: deleted %t, want %t", given, got, deleted)
		}
	}
}

// liveRevision is an API server that has a revision.
type liveRevision struct {
	client.Reader

	revision *appsv1.ControllerRevision
}

// Get implements client.Reader.
func (l liveRevision) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.revision.DeepCopyInto(into.(*appsv1.ControllerRevision)) //nolint:forcetypeassert // only revisions are asked for
	return nil
}

// TestCheckUnproven waits for the cache if the API server knows that the revision was proven.
func TestCheckUnproven(t *testing.T) {
	t.Parallel()
	for completed, wantBehind := range map[string]bool{"0": false, "1": true} {
		set := settled.Set(1)
		live := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-1", ResourceVersion: "7"}}
		live.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind("RollSet"))}
		live.Annotations = map[string]string{revision.CompletedAnnotation: completed}
		c := &Control{Live: liveRevision{revision: live}, Expectations: expectations.New(clock.RealClock{})}
		v := &Look{Objects: &snapshot.Objects{Set: set}, Memory: &Memory{}}
		behind, err := c.checkUnproven(t.Context(), v, "web-1")
		if err != nil || behind != wantBehind || c.Expectations.Unmet() > 0 != wantBehind {
			t.Errorf("completed %q: behind %t, error %v; want %t", completed, behind, err, wantBehind)
		}
	}
}
