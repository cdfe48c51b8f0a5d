// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestDelete(t *testing.T) {
	slowToEnd := Recorded()
	slowToEnd.TermDelay = 2 * time.Second
	tests := map[string]struct {
		image string
		grace int64
		ended time.Duration
		want  []string
	}{
		"Ready until the containers have ended": {
			image: "app:v1", grace: 10, ended: 2 * time.Second,
			want: []string{
				"+0s 2/2 Running Ready=True app=app:v1#0,ready",
				"+2s 2/2 Succeeded Ready=False app=app:v1#0,Completed(0)",
			},
		},
		"the grace period is a bound": {
			image: "app:v1", grace: 1, ended: time.Second,
			want: []string{
				"+0s 2/2 Running Ready=True app=app:v1#0,ready",
				"+1s 2/2 Failed Ready=False app=app:v1#0,Error(137)",
			},
		},
		"a container that never ran cannot be accounted for": {
			image: "app:missing", grace: 10, ended: 2 * time.Second,
			want: []string{
				"+0s 2/2 Pending Ready=False app=app:missing#0,ContainerCreating",
				"+2s 2/2 Pending Ready=False app=app:missing#0,ContainerCreating",
				"+2.000000001s 2/2 Failed Ready=False app=app:missing#0,ContainerStatusUnknown(137)",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFilm(t, slowToEnd, newPod(tt.image)).run(5 * time.Second)
			if f.delete(tt.grace).run(tt.ended + 100*time.Millisecond); f.removed {
				t.Error("the object is gone at the same moment as the containers")
			}
			if f.run(time.Minute).expect(tt.want...); !f.removed {
				t.Error("the object is never removed")
			}
		})
	}
}

func TestDeletedPodIsNotUpdated(t *testing.T) {
	slowToEnd := Recorded()
	slowToEnd.TermDelay = 2 * time.Second
	f := newFilm(t, slowToEnd, newPod("app:v1")).run(time.Minute)
	f.delete(10).run(time.Second)
	f.image("app:v2").run(time.Minute).expect("+1s 3/3 Succeeded Ready=False app=app:v1#0,Completed(0)")
}

// A shorter deletion brings the end forward.
func TestSecondDelete(t *testing.T) {
	slowToEnd := Recorded()
	slowToEnd.TermDelay = time.Minute
	f := newFilm(t, slowToEnd, newPod("app:v1")).run(time.Minute)
	f.delete(100).run(10 * time.Second)
	f.delete(1).run(time.Second).expect("+0s 3/3 Failed Ready=False app=app:v1#0,Error(137)")
}

// A finalizer keeps the object after the kubelet is done with it: there is nothing left to ask for.
func TestRemovedOnlyOnce(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:v1")).run(time.Minute)
	f.delete(10).run(time.Minute)
	f.removed = false
	f.edit(func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = new(int64(0)) }).run(time.Hour).expect()
	if f.removed {
		t.Error("removal is asked for again while a finalizer holds the object")
	}
}

func TestDeletedBeforeItWasSeen(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:v1"))
	f.delete(10).run(time.Minute).expect(
		"+0s 2/2 Pending Ready=False app=app:v1#0,ContainerCreating",
		"+50ms 2/2 Failed Ready=False app=app:v1#0,ContainerStatusUnknown(137)",
	)
	if !f.removed {
		t.Error("the object is never removed")
	}
}

func TestEvict(t *testing.T) {
	f := newFilm(t, Recorded(), newPod("app:v1")).run(time.Minute)
	f.edit(func(p *corev1.Pod) { p.Annotations = map[string]string{EvictAnnotation: ""} }).run(time.Hour).expect(
		"+0s 1/1 Failed Ready=False app=app:v1#0,Error(137)",
	)
	if f.pod.Status.Reason != "Evicted" || f.removed {
		t.Errorf("reason %q, removed %v; want Evicted, and the object kept", f.pod.Status.Reason, f.removed)
	}
}
