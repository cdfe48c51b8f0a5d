// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"math"
	"runtime"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/testing/settled"
)

// TestMoreReplicasThanAnyQuotaAllows takes as many replicas as the API does. What that costs depends on the pods that there
// are and on those that are written, not on those that are wanted.
func TestMoreReplicasThanAnyQuotaAllows(t *testing.T) { // not parallel: allocations are counted for the whole process
	const mostBytes = 50 << 20
	half := intstr.FromString("50%")
	tests := map[string]struct {
		change   func(*v1beta1.RollSetSpec)
		wantPods int
	}{
		"random names": {change: func(*v1beta1.RollSetSpec) {}, wantPods: podcontrol.MaxWrites},
		"random names, surge and partition": {change: func(s *v1beta1.RollSetSpec) {
			s.UpdateStrategy.RollingUpdate = v1beta1.RollingUpdate{MaxSurge: &half, MaxUnavailable: &half, Partition: &half}
		}, wantPods: podcontrol.MaxWrites},
		"ordinals": {change: func(s *v1beta1.RollSetSpec) {
			s.PodIdentity, s.PodManagementPolicy = v1beta1.OrdinalIdentity, v1beta1.ParallelPodManagement
		}, wantPods: podcontrol.MaxWrites},
		"ordinals, one after the other": {change: func(s *v1beta1.RollSetSpec) {
			s.PodIdentity, s.PodManagementPolicy = v1beta1.OrdinalIdentity, v1beta1.OrderedReadyPodManagement
			s.UpdateStrategy.RollingUpdate = v1beta1.RollingUpdate{MaxUnavailable: &half, Partition: &half}
		}, wantPods: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &restingSet{set: settled.Set(math.MaxInt32)}
			tt.change(&s.set.Spec)
			objects := []client.Object{s.set}
			s.restart(t, objects...)
			s.reconcile(t)
			revision, ok := s.client.wrote[0].(*appsv1.ControllerRevision)
			if !ok {
				t.Fatalf("the first write is of %T, want a revision", s.client.wrote[0])
			}
			objects = append(objects, revision)
			for round, pods := range []int{0, 100} { // none, and some that are there
				for i := range pods {
					objects = append(objects, settled.Pod(s.set, revision.Name, i))
				}
				s.restart(t, objects...)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				s.reconcile(t)
				runtime.ReadMemStats(&after)
				if got := after.TotalAlloc - before.TotalAlloc; got > mostBytes {
					t.Errorf("round %d: %d MB are allocated, want %d at most", round, got>>20, mostBytes>>20)
				}
				created := 0
				for _, o := range s.client.wrote {
					if _, ok := o.(*corev1.Pod); ok {
						created++
					}
				}
				if created != tt.wantPods {
					t.Errorf("round %d: %d pods are created, want %d", round, created, tt.wantPods)
				}
			}
		})
	}
}
