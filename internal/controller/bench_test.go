// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"rollset.dev/rollset/internal/controller/watch"
)

// maxExponent is how fast the number of allocations may grow with the pods: 0 is not at all, 1 as fast as they do. All
// that is kept of pods is kept in slices, so that nothing is allocated for a single one, and a deep copy of them, a map of
// them or a text about each would show.
const maxExponent = 0.15

// maxBytes is the memory that a look may allocate for each pod: a replica and its place, but no copy of the pod. It is 570 without the
// race detector, which adds as much as 60.
const maxBytes = 700

// TestCostOfAnIdleReconcile counts what a look at a settled set costs. Time grows with the pods, as BenchmarkReconcile
// shows; it does not decide a test.
func TestCostOfAnIdleReconcile(t *testing.T) { // not parallel: allocations are counted for the whole process
	const others = 1_000
	allocations := map[int]float64{}
	sizes := []int{10, 100, 1_000}
	if !testing.Short() {
		sizes = append(sizes, 10_000)
	}
	for _, n := range sizes {
		s := newRestingSet(t, n, others)
		s.client.pods = 0
		s.reconcile(t)
		if got := s.client.pods; got != n {
			t.Errorf("%d pods: %d are looked at", n, got)
		}
		if len(s.client.wide) > 0 {
			t.Errorf("%d pods: lists of %v are copied, or not by an index of a namespace", n, s.client.wide)
		}
		before := allocated()
		allocations[n] = testing.AllocsPerRun(4, func() { s.reconcile(t) }) // and once more before it counts
		if bytes := (allocated() - before) / 5 / uint64(n); n >= 1_000 && bytes > maxBytes {
			t.Errorf("%d pods: %d bytes are allocated for each pod, want %d at most", n, bytes, maxBytes)
		}
		if len(s.client.wrote) > 0 {
			t.Errorf("%d pods: a settled set is written to: %T", n, s.client.wrote[0])
		}
		if len(s.live.asked) > 0 {
			t.Errorf("%d pods: the API server is asked for %v", n, s.live.asked)
		}
	}
	for i, n := range sizes[1:] {
		fewer := sizes[i]
		exponent := math.Log(allocations[n]/allocations[fewer]) / math.Log(float64(n)/float64(fewer))
		t.Logf("%d pods: %.0f allocations, exponent %.2f", n, allocations[n], exponent)
		if exponent > maxExponent {
			t.Errorf("from %d to %d pods allocations grow with exponent %.2f, want %.2f at most", fewer, n, exponent, maxExponent)
		}
	}
}

// allocated is how many bytes this process has ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestCostOfUpdatedPods looks at pods that were once updated in place: to read what their annotations say of that, at each
// look again, would be most of its cost.
func TestCostOfUpdatedPods(t *testing.T) { // not parallel: allocations are counted for the whole process
	const n = 1_000
	s := newRestingSet(t, n, 0)
	cost := func() float64 { return testing.AllocsPerRun(5, func() { s.reconcile(t) }) }
	before := cost()
	s.updateInPlace(t)
	if after := cost(); after > before+n/10 {
		t.Errorf("%.0f allocations, %.0f before the update", after, before)
	}
}

// BenchmarkReconcile looks at a set with which all is well.
func BenchmarkReconcile(b *testing.B) { benchmarkReconcile(b, nil) }

// BenchmarkReconcileWaiting looks at a set that waits for a tenth of its pods, and says so.
func BenchmarkReconcileWaiting(b *testing.B) { benchmarkReconcile(b, (*restingSet).disturb) }

// BenchmarkReconcileRollout looks at a set in the midst of a rollout.
func BenchmarkReconcileRollout(b *testing.B) { benchmarkReconcile(b, (*restingSet).rollOut) }

// BenchmarkReconcileUpdated looks at a set whose pods were once updated in place.
func BenchmarkReconcileUpdated(b *testing.B) { benchmarkReconcile(b, (*restingSet).updateInPlace) }

// benchmarkReconcile looks at settled sets of more and more pods, to which something may have happened.
func benchmarkReconcile(b *testing.B, happened func(*restingSet, testing.TB)) {
	b.Helper()
	for _, n := range []int{10, 100, 1_000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := newRestingSet(b, n, 0)
			if happened != nil {
				happened(s, b)
			}
			b.ReportAllocs()
			for b.Loop() {
				s.reconcile(b)
			}
		})
	}
}

// BenchmarkReconcileBesideOthers looks at a set of 100 pods in a namespace with more and more pods of others, which
// must not matter.
func BenchmarkReconcileBesideOthers(b *testing.B) {
	for _, others := range []int{0, 10_000} {
		b.Run(strconv.Itoa(others), func(b *testing.B) {
			s := newRestingSet(b, 100, others)
			b.ReportAllocs()
			for b.Loop() {
				s.reconcile(b)
			}
		})
	}
}

// BenchmarkPodEvents finds the sets that an update of a pod concerns.
func BenchmarkPodEvents(b *testing.B) {
	const n = 1_000
	s := newRestingSet(b, n, 1)
	updates := []struct {
		name   string
		of     *corev1.Pod
		change func(*corev1.Pod)
	}{
		{"readiness", s.pods[0], func(p *corev1.Pod) { p.Status.Conditions[3].Status = corev1.ConditionFalse }},
		{"address", s.pods[0], func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }},
		{"annotation", s.pods[0], func(p *corev1.Pod) { p.Annotations = map[string]string{"example.com/seen": "yes"} }},
		{"foreign", s.pods[n], func(p *corev1.Pod) { p.Status.Conditions[3].Status = corev1.ConditionFalse }},
		{"orphan", s.pods[0], func(p *corev1.Pod) { p.OwnerReferences = nil }},
	}
	for _, u := range updates {
		b.Run(u.name, func(b *testing.B) {
			after := u.of.DeepCopy()
			u.change(after)
			handle := s.podHandler(b)
			b.ReportAllocs()
			for b.Loop() {
				handle(b.Context(), u.of, after)
			}
		})
	}
}

// podHandler is the controller's handler of updates of pods.
func (s *restingSet) podHandler(tb testing.TB) func(ctx context.Context, before, after client.Object) {
	tb.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	tb.Cleanup(queue.ShutDown)
	sources := s.reconciler.Sources()
	pods := slices.IndexFunc(sources, func(source watch.Source) bool { _, ok := source.Object.(*corev1.Pod); return ok })
	handler := sources[pods].Handler
	return func(ctx context.Context, before, after client.Object) {
		handler.Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)
	}
}
