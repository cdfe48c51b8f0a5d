// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/podcontrol"
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
}

// newCached fills a cache. Unlike that of a manager it needs no API server.
func newCached(tb testing.TB, objects ...client.Object) *cached {
	tb.Helper()
	c := &cached{scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(c.scheme); err != nil {
			tb.Fatal(err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	sources := map[string]*source{}
	for _, o := range []client.Object{
		&v1alpha1.RollSet{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{},
	} {
		gvk, err := apiutil.GVKForObject(o, c.scheme)
		if err != nil {
			tb.Fatal(err)
		}
		mapper.Add(gvk, meta.RESTScopeNamespace)
		sources[fmt.Sprintf("%T", o)] = &source{}
	}
	mapper.Add(storagev1.SchemeGroupVersion.WithKind("StorageClass"), meta.RESTScopeRoot)
	for _, o := range objects {
		s := sources[fmt.Sprintf("%T", o)]
		s.objects = append(s.objects, o)
	}
	var err error
	c.Cache, err = cache.New(&rest.Config{}, cache.Options{
		Scheme: c.scheme,
		Mapper: mapper,
		NewInformer: func(_ toolscache.ListerWatcher, o runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(sources[fmt.Sprintf("%T", o)], o, resync, by)
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := IndexFields(tb.Context(), c.Cache); err != nil {
		tb.Fatal(err)
	}
	stopped := make(chan error)
	ctx, stop := context.WithCancel(tb.Context())
	go func() { stopped <- c.Start(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			tb.Error(err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		tb.Fatal("the cache is not filled")
	}
	return c
}

// source is what a kind's informer lists. There is nothing to watch: nothing happens.
type source struct{ objects []client.Object }

// List implements the informer's ListerWatcher.
func (s *source) List(metav1.ListOptions) (runtime.Object, error) {
	list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1000"}}
	for _, o := range s.objects {
		list.Items = append(list.Items, runtime.RawExtension{Object: o})
	}
	return list, nil
}

// Watch implements the informer's ListerWatcher.
func (s *source) Watch(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

// IsWatchListSemanticsUnSupported makes the informer list.
func (s *source) IsWatchListSemanticsUnSupported() bool { return true }

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
func (c *cached) count(pods Pods) Pods {
	return func(ctx context.Context, namespace, controller string) ([]*corev1.Pod, error) {
		found, err := pods(ctx, namespace, controller)
		c.pods += len(found)
		return found, err
	}
}

// Create implements client.Client.
func (c *cached) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
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
func (w statusWriter) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	w.cached.wrote = append(w.cached.wrote, o)
	return nil
}

// settled is a set of n pods with which all is well, in a namespace with pods of others.
type settled struct {
	client     *cached
	live       *liveList
	reconciler *Reconciler
	set        *v1alpha1.RollSet
	pods       []*corev1.Pod
}

// newSettled lets the controller itself bring the set to where it writes nothing any more.
func newSettled(tb testing.TB, n, strangers int) *settled {
	tb.Helper()
	s := &settled{set: settledSet(n)}
	s.restart(tb, s.set)
	s.reconcile(tb)
	revision, ok := s.client.wrote[0].(*appsv1.ControllerRevision)
	if !ok {
		tb.Fatalf("the first write is of %T, want a revision", s.client.wrote[0])
	}
	revision.Annotations["apps.rollset.dev/completed"] = "1"
	objects := []client.Object{revision}
	for i := range n + strangers {
		set := s.set
		if i >= n {
			set = settledSet(strangers)
			set.Name, set.UID = "api", "another"
		}
		pod := readyPod(set, revision.Name, i)
		s.pods = append(s.pods, pod)
		objects = append(objects, pod)
	}
	s.settle(tb, objects)
	return s
}

// settle has the set reconciled beside these objects until nothing is written any more.
func (s *settled) settle(tb testing.TB, objects []client.Object) {
	tb.Helper()
	for range 3 {
		s.restart(tb, append(slices.Clone(objects), s.set)...)
		s.reconcile(tb)
		if len(s.client.wrote) == 0 {
			return
		}
		set, ok := s.client.wrote[0].(*v1alpha1.RollSet)
		if !ok {
			tb.Fatalf("a write of %T, want none but of the set's status", s.client.wrote[0])
		}
		s.set = set
	}
	tb.Fatal("the set does not settle")
}

// disturb makes every tenth pod unready. There is nothing to be done about it.
func (s *settled) disturb(tb testing.TB) {
	tb.Helper()
	s.change(tb, func(i int, pod *corev1.Pod) {
		if i%10 == 0 {
			pod.Status.Conditions[3].Status = corev1.ConditionFalse
		}
	})
}

// updateInPlace makes the pods what an update in place leaves. The pods have no gate: that their update is done shows in
// the content of the image, which is another one than before, to whoever looks at them.
func (s *settled) updateInPlace(tb testing.TB) {
	tb.Helper()
	s.change(tb, func(i int, pod *corev1.Pod) {
		pod.Generation, pod.Status.ObservedGeneration = 2, 2
		pod.Status.ContainerStatuses[0].ImageID = "example.com/app@sha256:" + strings.Repeat("a", 64)
		pod.Annotations = map[string]string{inplace.StateAnnotation: fmt.Sprintf(
			`{"revision":%q,"generation":2,"containers":{"app":{"id":"containerd://%d","image":1,"content":1}}}`,
			pod.Labels[v1alpha1.RevisionLabel], i)}
	})
}

// rollOut leaves the set halfway from another revision to its own, with as many pods unavailable as may be. There is
// nothing to be done about it.
func (s *settled) rollOut(tb testing.TB) {
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
		pod.Labels[v1alpha1.RevisionLabel] = update.Name
	}
	s.settle(tb, objects)
}

// change changes the pods. There is nothing to be done about it.
func (s *settled) change(tb testing.TB, by func(i int, pod *corev1.Pod)) {
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
func (s *settled) restart(tb testing.TB, objects ...client.Object) {
	tb.Helper()
	s.client = newCached(tb, objects...)
	s.live = &liveList{Reader: s.client}
	watermarks, err := InformerWatermarks(tb.Context(), s.client.Cache)
	if err != nil {
		tb.Fatal(err)
	}
	pods, err := InformerPods(tb.Context(), s.client.Cache, s.client)
	if err != nil {
		tb.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Unix(10_000, 0))
	store := expectations.New(now)
	s.reconciler = &Reconciler{
		Client:       s.client,
		Live:         s.live,
		Pods:         s.client.count(pods),
		Watermarks:   watermarks,
		Clock:        now,
		Events:       events.NewFakeRecorder(10),
		Runner:       podcontrol.Bounded(1, 1),
		Expectations: store,
		Metrics:      NewMetrics(prometheus.NewRegistry(), store),
	}
}

// reconcile does what the queue's worker does for one request: it gets the set, and has it reconciled.
func (s *settled) reconcile(tb testing.TB) {
	tb.Helper()
	set := &v1alpha1.RollSet{}
	if err := s.client.Get(tb.Context(), client.ObjectKeyFromObject(s.set), set); err != nil {
		tb.Fatal(err)
	}
	if _, err := s.reconciler.Reconcile(tb.Context(), set); err != nil {
		tb.Fatal(err)
	}
}

func settledSet(n int) *v1alpha1.RollSet {
	labels := map[string]string{"app": "web"}
	set := &v1alpha1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "set", Generation: 1, ResourceVersion: "1"},
		Spec: v1alpha1.RollSetSpec{
			Replicas:    new(int32(n)),
			PodIdentity: v1alpha1.RandomIdentity,
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{
					{Name: "app", Image: "example.com/app:v1"}, {Name: "proxy", Image: "example.com/proxy:v1"},
				}},
			},
		},
	}
	set.Status.ObservedGeneration = -1
	return set
}

// readyPod is the pod of a set that has the place i, by its ordinal or in the sequence of ids, as the API server and a
// kubelet leave it.
func readyPod(set *v1alpha1.RollSet, revision string, i int) *corev1.Pod {
	id := identity.NewSequence(set.UID).At(i)
	if set.Spec.PodIdentity == v1alpha1.OrdinalIdentity {
		id = strconv.Itoa(i)
	}
	pod := podcontrol.Build(set, snapshot.Revision{Name: revision, Template: &set.Spec.Template}, id)
	pod.UID = types.UID(string(set.UID) + "-" + strconv.Itoa(i))
	pod.ResourceVersion, pod.Generation = "1", 1
	pod.CreationTimestamp = metav1.Unix(100, 0)
	pod.Spec.NodeName = "node-" + strconv.Itoa(i%100)
	pod.Status.Phase, pod.Status.ObservedGeneration = corev1.PodRunning, 1
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(200, 0),
		})
	}
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ContainerID: "containerd://" + id, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(150, 0)}},
		})
	}
	return pod
}
