// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func sized(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}
	}
}

func (f *film) resize(cpu string) *film {
	return f.edit(func(p *corev1.Pod) { sized(cpu)(p); p.Generation++ })
}

func cpuOf(p *corev1.Pod) [2]string {
	c := p.Status.ContainerStatuses[0]
	return [2]string{c.AllocatedResources.Cpu().String(), c.Resources.Requests.Cpu().String()}
}

// A resize is two events: allocated first, and then the container's own resources, which end it.
func TestResize(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:v1", sized("100m"))).run(time.Minute)
	f.resize("150m").run(time.Nanosecond)
	if diff := cmp.Diff([2]string{"150m", "100m"}, cpuOf(f.pod)); diff != "" {
		t.Errorf("allocated and actual CPU while in progress (-want +got):\n%s", diff)
	}
	f.run(time.Minute).expect(
		"+0s 2/2 Running Ready=True PodResizeInProgress app=app:v1#0,ready",
		"+50ms 2/2 Running Ready=True app=app:v1#0,ready",
	)
	if diff := cmp.Diff([2]string{"150m", "150m"}, cpuOf(f.pod)); diff != "" {
		t.Errorf("allocated and actual CPU at the end (-want +got):\n%s", diff)
	}
}

func TestResizeThatRestarts(t *testing.T) {
	pod := newPod("app:v1", sized("100m"), func(p *corev1.Pod) {
		p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
			{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer},
		}
	})
	newFilm(t, Recorded(), pod).run(time.Minute).resize("150m").run(time.Minute).expect(
		"+0s 2/2 Running Ready=True PodResizeInProgress app=app:v1#0,ready",
		"+150ms 2/2 Running Ready=True app=app:v1#1,ready<Completed(0)",
	)
}

func TestDeferredResize(t *testing.T) {
	deferred := func(p *corev1.Pod) { p.Annotations = map[string]string{DeferResizeAnnotation: ""} }
	f := newFilm(t, Recorded(), newPod("app:v1", sized("100m"), deferred)).run(time.Minute)
	f.resize("150m").run(time.Minute).expect("+0s 2/2 Running Ready=True PodResizePending Deferred app=app:v1#0,ready")
	// A container that is replaced meanwhile keeps what it has.
	f.image("app:v2").run(time.Minute)
	if diff := cmp.Diff([2]string{"100m", "100m"}, cpuOf(f.pod)); diff != "" {
		t.Errorf("allocated and actual CPU while deferred (-want +got):\n%s", diff)
	}
	f.edit(func(p *corev1.Pod) { p.Annotations = nil }).run(time.Minute).expect(
		"+0s 3/3 Running Ready=True PodResizeInProgress app=app:v2#1,ready<Completed(0)",
		"+50ms 3/3 Running Ready=True app=app:v2#1,ready<Completed(0)",
	)
}

func TestInfeasibleResize(t *testing.T) {
	small := Recorded()
	small.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	newFilm(t, small, newPod("app:v1", sized("100m"))).run(time.Minute).resize("3").run(time.Minute).expect(
		"+0s 2/2 Running Ready=True PodResizePending Infeasible app=app:v1#0,ready",
	)
}

func TestResizeEndsBackOff(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:crash", probed, sized("100m"))).run(5 * time.Second)
	f.resize("150m").run(time.Second).expect(
		"+0s 2/2 Running Ready=False app=app:crash#1,CrashLoopBackOff<Error(1)",
		"+100ms 2/2 Running Ready=False app=app:crash#2,running<Error(1)",
		"+600ms 2/2 Running Ready=False app=app:crash#2,Error(1)<Error(1)",
		"+700ms 2/2 Running Ready=False app=app:crash#3,running<Error(1)",
	)
}
