// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestForgottenSetsWaitForNothing(t *testing.T) {
	t.Parallel()
	var m memory
	set, pod := types.NamespacedName{Name: "web"}, types.NamespacedName{Name: "web-1"}
	m.of("uid").collisions = new(int32(1))
	m.wait(pod, set)
	if got, ok := m.waiter(pod); !ok || got != set {
		t.Errorf("waiter = %v, %v, want %v", got, ok, set)
	}
	m.forget("uid", set)
	if _, ok := m.waiter(pod); ok || m.of("uid").collisions != nil {
		t.Error("something is remembered")
	}
}

func TestSeen(t *testing.T) {
	t.Parallel()
	pod := func(namespace, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, ResourceVersion: version}}
	}
	s := &seen{newest: map[string]string{}}
	s.OnAdd(pod("a", "9"), true)
	s.OnUpdate(nil, pod("a", "10"))
	s.OnAdd(pod("a", "8"), false)
	s.OnAdd(pod("b", "20"), false)
	s.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: pod("b", "21")})
	s.OnAdd("no object", false)
	for namespace, want := range map[string]string{"a": "10", "b": "21", "c": "1"} {
		if got := s.in(namespace); got != want {
			t.Errorf("in(%s) = %s, want %s", namespace, got, want)
		}
	}
}

// TestStatusWritesAreRationed has something urgent to report all the time.
func TestStatusWritesAreRationed(t *testing.T) {
	t.Parallel()
	const every, during = 20 * time.Millisecond, time.Minute
	var m recollection
	start := time.Unix(1_000, 0)
	writes, atOnce := 0, 0
	for now := start; now.Before(start.Add(during)); now = now.Add(every) {
		if m.hold(now) > 0 && !m.hurry(now) {
			continue
		}
		if now.Sub(start) == time.Duration(writes)*every {
			atOnce++
		}
		m.reported = now
		writes++
	}
	if atOnce != 1+maxHurried {
		t.Errorf("%d writes before the first that waits, want %d", atOnce, 1+maxHurried)
	}
	if most := maxHurried + 2*int(during/reportEvery); writes > most {
		t.Errorf("%d writes in %s, want %d at most", writes, during, most)
	}
	if before := start.Add(-time.Hour); m.hold(before) > 0 || !m.hurry(before) {
		t.Error("a write waits after the clock was set back")
	}
}
