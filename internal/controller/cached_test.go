// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/metrics"
	"rollset.dev/rollset/internal/controller/watch"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/testing/settled"
)

// cached is a client that reads from controller-runtime's own cache, which is filled with objects at the start and never
// hears of another. It keeps what is written to itself, and notes what is read.
type cached struct {
	client.Client
	cache.Cache

	scheme *runtime.Scheme
	// wrote are the objects as they would be after the writes.
	wrote []client.Object
	// pods counts the pods that were read; wide are the lists that more than an index was asked for.
	pods int
	wide []string
	// onCreate is called at each create, if it is not nil.
	onCreate func(client.Object)
	// refusal is the answer to each write of a status.
	refusal error
}

// newCached fills a cache. Unlike that of a manager it needs no API server.
func newCached(tb testing.TB, objects ...client.Object) *cached {
	tb.Helper()
	c := &cached{scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(c.scheme); err != nil {
			tb.Fatal(err)
		}
	}
	c.Cache = settled.NewCache(tb, c.scheme, informer.IndexFields, objects...)
	return c
}

// Get implements client.Client.
func (c *cached) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return c.Cache.Get(ctx, key, into, opts...)
}

// List implements client.Client.
func (c *cached) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	err := c.Cache.List(ctx, into, opts...)
	var options client.ListOptions
	options.ApplyOptions(opts)
	if options.FieldSelector == nil || options.Namespace == "" || options.UnsafeDisableDeepCopy == nil {
		c.wide = append(c.wide, fmt.Sprintf("%T", into))
	}
	return err
}

// count notes how many pods are read.
func (c *cached) count(pods informer.Pods) informer.Pods {
	return countedPods{Pods: pods, cached: c}
}

type countedPods struct {
	informer.Pods

	cached *cached
}

// With implements informer.Pods.
func (p countedPods) With(ctx context.Context, namespace, controller string) ([]*corev1.Pod, error) {
	found, err := p.Pods.With(ctx, namespace, controller)
	p.cached.pods += len(found)
	return found, err
}

// Create implements client.Client.
func (c *cached) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	if c.onCreate != nil {
		c.onCreate(o)
	}
	o.SetUID(types.UID(o.GetName()))
	o.SetResourceVersion("1")
	c.wrote = append(c.wrote, o)
	return nil
}

// Status implements client.Client.
func (c *cached) Status() client.SubResourceWriter { return statusWriter{cached: c} }

// statusWriter keeps statuses.
type statusWriter struct {
	client.SubResourceWriter

	cached *cached
}

// Patch implements client.SubResourceWriter.
func (w statusWriter) Patch(ctx context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	if w.cached.refusal != nil {
		return w.cached.refusal
	}
	body, err := patch.Data(o)
	if err != nil {
		return err
	}
	if err := w.cached.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	before, err := json.Marshal(o)
	if err != nil {
		return err
	}
	after, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		return err
	}
	set := &v1beta1.RollSet{}
	if err := json.Unmarshal(after, set); err != nil {
		return err
	}
	set.DeepCopyInto(o.(*v1beta1.RollSet)) //nolint:forcetypeassert // only sets have a status here
	w.cached.wrote = append(w.cached.wrote, o)
	return nil
}

// restingSet is a set of n pods with which all is well, in a namespace with pods of others.
type restingSet struct {
	client     *cached
	live       *liveList
	reconciler *Reconciler
	set        *v1beta1.RollSet
	pods       []*corev1.Pod
}

// newRestingSet lets the controller itself bring the set to where it has nothing left to write.
func newRestingSet(tb testing.TB, n, others int) *restingSet {
	tb.Helper()
	s := &restingSet{set: settled.Set(n)}
	s.restart(tb, s.set)
	s.reconcile(tb)
	revision, ok := s.client.wrote[0].(*appsv1.ControllerRevision)
	if !ok {
		tb.Fatalf("the first write is of %T, want a revision", s.client.wrote[0])
	}
	revision.Annotations["apps.rollset.dev/completed"] = "1"
	objects := []client.Object{revision}
	for i := range n + others {
		set := s.set
		if i >= n {
			set = settled.Set(others)
			set.Name, set.UID = "api", "another"
		}
		pod := settled.Pod(set, revision.Name, i)
		s.pods = append(s.pods, pod)
		objects = append(objects, pod)
	}
	s.settle(tb, objects)
	return s
}

// settle reconciles the set, with these objects in the cache, until nothing is left to write.
func (s *restingSet) settle(tb testing.TB, objects []client.Object) {
	tb.Helper()
	for range 3 {
		s.restart(tb, append(slices.Clone(objects), s.set)...)
		s.reconcile(tb)
		if len(s.client.wrote) == 0 {
			return
		}
		set, ok := s.client.wrote[0].(*v1beta1.RollSet)
		if !ok {
			tb.Fatalf("a write of %T, want none but of the set's status", s.client.wrote[0])
		}
		s.set = set
	}
	tb.Fatal("the set does not settle")
}

// disturb makes every tenth pod unready. There is nothing to be done about it.
func (s *restingSet) disturb(tb testing.TB) {
	tb.Helper()
	s.change(tb, func(i int, pod *corev1.Pod) {
		if i%10 == 0 {
			pod.Status.Conditions[3].Status = corev1.ConditionFalse
		}
	})
}

// updateInPlace puts the pods in the state after an update in place. The pods have no gate. Their status shows that the
// update is done, because the content of the image is another one than before.
func (s *restingSet) updateInPlace(tb testing.TB) {
	tb.Helper()
	s.change(tb, func(i int, pod *corev1.Pod) {
		pod.Generation, pod.Status.ObservedGeneration = 2, 2
		pod.Status.ContainerStatuses[0].ImageID = "example.com/app@sha256:" + strings.Repeat("a", 64)
		pod.Annotations = map[string]string{inplace.StateAnnotation: fmt.Sprintf(
			`{"revision":%q,"generation":2,"containers":{"app":{"id":"containerd://%d","image":1,"content":1}}}`,
			pod.Labels[v1beta1.RevisionLabel], i)}
	})
}

// rollOut leaves the set halfway from another revision to its own, with as many pods unavailable as may be. There is
// nothing to be done about it.
func (s *restingSet) rollOut(tb testing.TB) {
	tb.Helper()
	revisions := &appsv1.ControllerRevisionList{}
	if err := s.client.List(tb.Context(), revisions); err != nil {
		tb.Fatal(err)
	}
	current := &revisions.Items[0]
	s.set.Generation++
	s.set.Spec.Template.Spec.Containers[0].Image = "example.com/app:v2"
	rolling := &s.set.Spec.UpdateStrategy.RollingUpdate
	rolling.MaxUnavailable, rolling.MaxSurge = new(intstr.FromString("10%")), new(intstr.FromInt32(0))
	s.restart(tb, s.set, current)
	s.reconcile(tb)
	update, ok := s.client.wrote[0].(*appsv1.ControllerRevision)
	if !ok {
		tb.Fatalf("the first write is of %T, want a revision", s.client.wrote[0])
	}
	objects := []client.Object{current, update}
	for i, pod := range s.pods {
		objects = append(objects, pod)
		switch {
		case i%2 == 0:
			continue
		case i%10 == 1:
			pod.Status.Conditions[3].Status = corev1.ConditionFalse
		}
		pod.Labels[v1beta1.RevisionLabel] = update.Name
	}
	s.settle(tb, objects)
}

// change changes the pods. There is nothing to be done about it.
func (s *restingSet) change(tb testing.TB, by func(i int, pod *corev1.Pod)) {
	tb.Helper()
	revisions := &appsv1.ControllerRevisionList{}
	if err := s.client.List(tb.Context(), revisions); err != nil {
		tb.Fatal(err)
	}
	objects := []client.Object{&revisions.Items[0]}
	for i, pod := range s.pods {
		by(i, pod)
		objects = append(objects, pod)
	}
	s.settle(tb, objects)
}

// restart begins a new life of the controller, with a cache of these objects.
func (s *restingSet) restart(tb testing.TB, objects ...client.Object) {
	tb.Helper()
	s.client = newCached(tb, objects...)
	s.live = &liveList{Reader: s.client}
	marks, err := informer.NewMarks(tb.Context(), s.client.Cache)
	if err != nil {
		tb.Fatal(err)
	}
	pods, err := informer.NewPods(tb.Context(), s.client.Cache, s.client)
	if err != nil {
		tb.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Unix(10_000, 0))
	store := expectations.New(now)
	s.reconciler = &Reconciler{
		Client:       s.client,
		Live:         s.live,
		Pods:         s.client.count(pods),
		Watermarks:   marks.Of,
		Clock:        now,
		Events:       events.NewFakeRecorder(10),
		Runner:       podcontrol.Bounded(1, 1),
		Expectations: store,
		Metrics:      metrics.New(prometheus.NewRegistry(), store),
		Line:         watch.NewLine("", 1, clocktesting.NewFakeClock(now.Now())),
	}
}

// reconcile does what the queue's worker does for one request: it gets the set, and has it reconciled.
func (s *restingSet) reconcile(tb testing.TB) {
	tb.Helper()
	set := &v1beta1.RollSet{}
	if err := s.client.Get(tb.Context(), client.ObjectKeyFromObject(s.set), set); err != nil {
		tb.Fatal(err)
	}
	if _, err := s.reconciler.Reconcile(tb.Context(), set); err != nil {
		tb.Fatal(err)
	}
}
