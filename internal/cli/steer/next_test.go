// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
)

// rolling returns a set of three pods, some of them at revision b, and changes it.
func rolling(atB int32, change ...func(*v1beta1.RollSet)) *v1beta1.RollSet {
	set := &v1beta1.RollSet{}
	set.Spec.Replicas = new(int32(3))
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
	set.Status.CurrentRevision, set.Status.UpdateRevision = "a", "b"
	for name, n := range map[string]int32{"a": 3 - atB, "b": atB} {
		if n > 0 {
			set.Status.Revisions = append(set.Status.Revisions, v1beta1.RevisionStatus{Name: name, Replicas: n})
		}
	}
	for _, f := range change {
		f(set)
	}
	return set
}

func replicas(n int32) func(*v1beta1.RollSet) {
	return func(set *v1beta1.RollSet) { set.Spec.Replicas = &n }
}

func partition(n int32) func(*v1beta1.RollSet) {
	return func(set *v1beta1.RollSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(n))
	}
}

// TestRollsNext announces no more pods than move.
func TestRollsNext(t *testing.T) {
	t.Parallel()
	surge := func(set *v1beta1.RollSet) { set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(2)) }
	paused := func(set *v1beta1.RollSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = true }
	kind := func(kind v1beta1.UpdateStrategyType) func(*v1beta1.RollSet) {
		return func(set *v1beta1.RollSet) { set.Spec.UpdateStrategy.Type = kind }
	}
	for name, test := range map[string]struct {
		set    *v1beta1.RollSet
		target string
		steps  int
		want   string
	}{
		"a new template":                   {rolling(0), someRevision, 0, "3 pods move, at most 1 unavailable at a time"},
		"a new template in a rollout":      {rolling(1), someRevision, 0, "up to 3 pods move, at most 1 unavailable at a time"},
		"a restart in a rollout":           {rolling(1), aNewRevision, 0, "3 pods move, at most 1 unavailable at a time"},
		"one pod":                          {rolling(0, replicas(1)), aNewRevision, 0, "1 pod moves, at most 1 unavailable at a time"},
		"steps and surge":                  {rolling(0, surge), aNewRevision, 2, "3 pods move, in steps, at most 1 unavailable at a time, with up to 2 more meanwhile"},
		"back, with one pod ahead":         {rolling(1), "a", 0, "2 of 3 pods there already; 1 pod moves, at most 1 unavailable at a time"},
		"to where all are":                 {rolling(3), "b", 0, "3 of 3 pods there already; no pod moves"},
		"a partition":                      {rolling(0, partition(1)), "b", 0, "2 pods move, at most 1 unavailable at a time; the partition keeps 1 at the current revision"},
		"a partition that is raised":       {rolling(3, partition(1)), "b", 1, "1 pod moves, at most 1 unavailable at a time, back to the current revision; the partition keeps 1 at the current revision"},
		"a partition above all":            {rolling(0, partition(5)), "b", 0, "the partition keeps all pods where they are"},
		"no pods":                          {rolling(0, replicas(0)), someRevision, 0, "the set is scaled to 0: no pod moves"},
		"no pods, whatever else would act": {rolling(0, replicas(0), paused, kind(v1beta1.OnDeleteStrategy)), someRevision, 0, "the set is scaled to 0: no pod moves"},
		"a pause":                          {rolling(0, paused), someRevision, 3, "the rollout is paused: no pod moves until it is resumed"},
		"OnDelete":                         {rolling(0, kind(v1beta1.OnDeleteStrategy)), someRevision, 0, "updateStrategy OnDelete: a pod is updated when it is deleted"},
		"Recreate":                         {rolling(0, kind(v1beta1.RecreateStrategy)), someRevision, 0, "updateStrategy Recreate: all 3 pods go before any new one comes"},
	} {
		if got := rollsNext(test.set, test.target, test.steps); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
}

// TestPartitionNext announces the pods that a new partition moves, in a rollout and without one.
func TestPartitionNext(t *testing.T) {
	t.Parallel()
	same := func(s *v1beta1.RollSet) { s.Status.UpdateRevision = "a" }
	for want, typed := range map[string]*v1beta1.RollSet{
		"all pods are at one revision: no pod moves": rolling(0, same),
		"1 of 3 pods there already; 1 pod moves, at most 1 unavailable at a time; the partition keeps 1 at the current revision": rolling(1, partition(2)),
	} {
		raw := &unstructured.Unstructured{Object: map[string]any{}}
		got, err := setPartition(set{RollSet: typed, raw: raw}, intstr.FromInt32(1))
		if err != nil || got != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
}

// TestSetImages writes images into containers of a template.
func TestSetImages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		images          map[string]string
		init, app, side string
		err             string
	}{
		{map[string]string{"*": "x"}, "i", "x", "x", ""},
		{map[string]string{"*": "x", "app": "y"}, "i", "y", "x", ""},
		{map[string]string{"*": "x", "app": "y", "side": "z"}, "i", "y", "z", ""},
		{map[string]string{"init": "x"}, "x", "a", "s", ""},
		{map[string]string{"nosuch": "x"}, "i", "a", "s", `there is no container "nosuch"; the containers are init, app, side`},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"initContainers": []any{map[string]any{"name": "init", "image": "i"}},
			"containers":     []any{map[string]any{"name": "app", "image": "a"}, map[string]any{"name": "side", "image": "s"}},
		}}}}}
		_, err := setImages(object, test.images)
		if err != nil || test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%v: %v", test.images, err)
			}
			continue
		}
		var got []string
		for _, field := range []string{"initContainers", "containers"} {
			list, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", field)
			for _, item := range list {
				container, _ := item.(map[string]any)
				image, _, _ := unstructured.NestedString(container, "image")
				got = append(got, image)
			}
		}
		if got[0] != test.init || got[1] != test.app || got[2] != test.side {
			t.Errorf("%v: %v", test.images, got)
		}
	}
}

// TestStatusIsAboutTheSpec waits until the status is about the spec, before a verb judges by it.
func TestStatusIsAboutTheSpec(t *testing.T) {
	t.Parallel()
	stale := rolling(0)
	stale.Name, stale.Namespace, stale.Generation, stale.Status.ObservedGeneration = "web", "shop", 2, 1
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reads := 0
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(stale).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, into, options...)
			if object, ok := into.(*unstructured.Unstructured); ok && err == nil {
				if reads++; reads > 2 {
					err = unstructured.SetNestedField(object.Object, int64(2), "status", "observedGeneration")
				}
			}
			return err
		},
	})
	s := session.New(genericiooptions.NewTestIOStreamsDiscard(), clock.RealClock{})
	before, err := read(t.Context(), api, client.ObjectKeyFromObject(stale))
	if err != nil {
		t.Fatal(err)
	}
	now, err := observed(t.Context(), s, api, before)
	if err != nil || now.Status.ObservedGeneration != 2 || reads != 3 {
		t.Errorf("after %d reads: generation %d, %v", reads, now.Status.ObservedGeneration, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := observed(ctx, s, api, before); !errors.Is(err, context.Canceled) {
		t.Errorf("a command that is interrupted: %v", err)
	}
}
