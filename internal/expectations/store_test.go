// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package expectations

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

const owner types.UID = "owner"

var (
	pods   = schema.GroupKind{Kind: "Pod"}
	claims = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

func at(resourceVersion string) map[schema.GroupKind]string {
	return map[schema.GroupKind]string{pods: resourceVersion}
}

func alive(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod-" + string(uid), UID: uid}}
}

func changed(uid types.UID, resourceVersion string) *corev1.Pod {
	pod := alive(uid)
	pod.ResourceVersion = resourceVersion
	return pod
}

func terminating(uid types.UID) *corev1.Pod {
	p := alive(uid)
	p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return p
}

func TestMet(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		write         func(*Store)
		wait          time.Duration
		cache         Cache
		looks         bool // past the cache, after a first time
		want          bool
		wantRemaining time.Duration
		wantExpired   int
	}{
		"nothing was written": {write: func(*Store) {}, want: true},
		"the cache is behind a write": {
			write: func(s *Store) { s.Wrote(owner, pods, "100") },
			cache: Cache{Synced: at("99")}, wantRemaining: Timeout,
		},
		"the cache is behind the newest of several writes that returned in another order": {
			write: func(s *Store) { s.Wrote(owner, pods, "101"); s.Wrote(owner, pods, "100") },
			cache: Cache{Synced: at("100")}, wantRemaining: Timeout,
		},
		"resourceVersions are numbers, not strings": {
			write: func(s *Store) { s.Wrote(owner, pods, "99") },
			cache: Cache{Synced: at("100")}, want: true,
		},
		"the cache has reached a write": {
			write: func(s *Store) { s.Wrote(owner, pods, "100") },
			cache: Cache{Synced: at("100")}, want: true,
		},
		"the cache of another kind is behind": {
			write: func(s *Store) { s.Wrote(owner, pods, "100"); s.Wrote(owner, claims, "101") },
			cache: Cache{Synced: map[schema.GroupKind]string{pods: "101", claims: "100"}}, wantRemaining: Timeout,
		},
		"a cache that reports no resourceVersion is not waited for": {
			write: func(s *Store) { s.Wrote(owner, pods, "100") }, want: true,
		},
		"a resourceVersion that is no number is not waited for": {
			write: func(s *Store) { s.Wrote(owner, pods, "next") },
			cache: Cache{Synced: at("1")}, want: true,
		},
		"a write that the cache never shows expires": {
			write: func(s *Store) { s.Wrote(owner, pods, "100") }, wait: Timeout,
			cache: Cache{Synced: at("1")}, want: true, wantExpired: 1,
		},
		"a deleted pod is still there": {
			write: func(s *Store) { s.Deleting(owner, "a") },
			cache: Cache{Pods: []*corev1.Pod{alive("b"), alive("a")}}, wantRemaining: Timeout,
		},
		"a deleted pod is terminating": {
			write: func(s *Store) { s.Deleting(owner, "a") },
			cache: Cache{Pods: []*corev1.Pod{terminating("a")}}, want: true,
		},
		"a deleted pod is gone": {
			write: func(s *Store) { s.Deleting(owner, "a") },
			cache: Cache{Pods: []*corev1.Pod{alive("b")}}, want: true,
		},
		"a delete that failed is not waited for": {
			write: func(s *Store) { s.Deleting(owner, "a"); s.Unfulfillable(owner, "a") },
			cache: Cache{Pods: []*corev1.Pod{alive("a")}}, want: true,
		},
		"an update without an answer is waited for": {
			write: func(s *Store) { s.UnsettledUpdate(owner, "a", "7") },
			cache: Cache{Pods: []*corev1.Pod{changed("a", "7")}}, wantRemaining: UnsettledTimeout,
		},
		"a change that is seen after an update without an answer may be another client's": {
			write: func(s *Store) { s.UnsettledUpdate(owner, "a", "7") },
			cache: Cache{Pods: []*corev1.Pod{changed("a", "8")}},
		},
		"a look past the cache ends the wait for an update without an answer": {
			write: func(s *Store) { s.UnsettledUpdate(owner, "a", "7") },
			cache: Cache{Pods: []*corev1.Pod{changed("a", "8")}}, looks: true, want: true,
		},
		"a pod is gone whose update had no answer": {
			write: func(s *Store) { s.UnsettledUpdate(owner, "a", "7") },
			cache: Cache{Pods: []*corev1.Pod{alive("b")}},
		},
		"an update without an answer expires soon": {
			write: func(s *Store) { s.UnsettledUpdate(owner, "a", "7") }, wait: UnsettledTimeout,
			cache: Cache{Pods: []*corev1.Pod{changed("a", "7")}}, wantExpired: 1,
		},
		"a delete without an answer is waited for": {
			write: func(s *Store) { s.Deleting(owner, "a"); s.UnsettledDelete(owner, "a") },
			cache: Cache{Pods: []*corev1.Pod{alive("a")}}, wantRemaining: UnsettledTimeout,
		},
		"a delete without an answer expires soon": {
			write: func(s *Store) { s.Deleting(owner, "a"); s.UnsettledDelete(owner, "a") }, wait: UnsettledTimeout,
			cache: Cache{Pods: []*corev1.Pod{alive("a")}}, wantExpired: 1,
		},
		"a create without an answer is waited for": {
			write: func(s *Store) { s.UnsettledCreate(owner, "pod-a") }, wait: time.Second,
			cache: Cache{Pods: []*corev1.Pod{alive("b")}}, wantRemaining: UnsettledTimeout - time.Second,
		},
		"a create without an answer has happened": {
			write: func(s *Store) { s.UnsettledCreate(owner, "pod-a") },
			cache: Cache{Pods: []*corev1.Pod{alive("a")}}, want: true,
		},
		"a create without an answer expires soon": {
			write: func(s *Store) { s.UnsettledCreate(owner, "pod-a") }, wait: UnsettledTimeout, wantExpired: 1,
		},
		"the last expectation to expire is the one that counts": {
			write: func(s *Store) { s.UnsettledCreate(owner, "pod-a"); s.Wrote(owner, pods, "100") }, wait: UnsettledTimeout,
			cache: Cache{Synced: at("99")}, wantRemaining: Timeout - UnsettledTimeout, wantExpired: 1,
		},
		"what is expected of another owner does not matter": {
			write: func(s *Store) { s.Wrote("another", pods, "100") },
			cache: Cache{Synced: at("99")}, want: true,
		},
		"an owner that is gone expects nothing": {
			write: func(s *Store) { s.Wrote(owner, pods, "100"); s.Forget(owner) },
			cache: Cache{Synced: at("99")}, want: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			s := New(clock)
			tc.write(s)
			clock.SetTime(clock.Now().Add(tc.wait))
			reached, _ := s.Reached(owner, tc.cache.Synced)
			met, remaining := s.Met(owner, tc.cache)
			if tc.looks && !met {
				s.Looked(owner)
				met, remaining = s.Met(owner, tc.cache)
			}
			if met && !reached {
				t.Error("Reached() = false, though all is met")
			}
			if met != tc.want || remaining != tc.wantRemaining {
				t.Errorf("Met() = %v, %v, want %v, %v", met, remaining, tc.want, tc.wantRemaining)
			}
			if got := s.Expired(); got != tc.wantExpired {
				t.Errorf("Expired() = %d, want %d", got, tc.wantExpired)
			}
		})
	}
}

// TestLooked lets writes expire that the cache did not show in time. Only a look past the cache ends the wait.
func TestLooked(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	s := New(clock)
	behind := Cache{Pods: []*corev1.Pod{alive("a"), alive("b")}}
	s.UnsettledDelete(owner, "a")
	clock.SetTime(clock.Now().Add(UnsettledTimeout / 2))
	s.UnsettledDelete(owner, "b")
	for _, want := range []time.Duration{UnsettledTimeout, UnsettledTimeout / 2, 0, 0} {
		if met, remaining := s.Met(owner, behind); met || remaining != want {
			t.Errorf("Met() = %t, %s; want false, %s", met, remaining, want)
		}
		clock.SetTime(clock.Now().Add(UnsettledTimeout / 2))
	}
	s.Looked(owner)
	if met, _ := s.Met(owner, behind); !met || s.Unmet() != 0 {
		t.Errorf("Met() = %t with %d owners that wait after a look past the cache", met, s.Unmet())
	}
}

func TestNothingIsKeptOfWhatWasMet(t *testing.T) {
	t.Parallel()
	s := New(clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
	s.Wrote(owner, pods, "100")
	s.Deleting(owner, "a")
	s.UnsettledCreate(owner, "pod-b")
	if got := s.Unmet(); got != 1 {
		t.Errorf("Unmet() = %d before the cache has caught up, want 1", got)
	}
	if met, _ := s.Met(owner, Cache{Synced: at("100"), Pods: []*corev1.Pod{terminating("a"), alive("b")}}); !met {
		t.Error("Met() = false with a cache that shows everything")
	}
	if got := s.Unmet(); got != 0 {
		t.Errorf("Unmet() = %d, want 0", got)
	}
}

func TestReached(t *testing.T) {
	t.Parallel()
	s := New(clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
	s.Deleting(owner, "a")
	if all, _ := s.Reached(owner, at("99")); !all {
		t.Error("Reached = false, though only a list shows deletes")
	}
	s.Wrote(owner, pods, "100")
	if all, remaining := s.Reached(owner, at("99")); all || remaining != Timeout {
		t.Errorf("Reached = %t, %s before the write, want false, %s", all, remaining, Timeout)
	}
	if all, _ := s.Reached(owner, at("100")); !all {
		t.Error("Reached = false after the write")
	}
	if met, _ := s.Met(owner, Cache{Synced: at("100"), Pods: []*corev1.Pod{alive("a")}}); met {
		t.Error("Met = true: a look at watermarks made the store forget a delete")
	}
}

func TestOldest(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	s := New(clock)
	expect := func(want time.Duration) {
		t.Helper()
		if got := s.Oldest(); got != want {
			t.Errorf("Oldest() = %v, want %v", got, want)
		}
	}
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	expect(0)
	s.Wrote(owner, pods, "100")
	pass(time.Minute)
	s.Wrote(owner, pods, "200") // the first is still expected
	s.Wrote("another", pods, "200")
	pass(time.Second)
	expect(time.Minute + time.Second)
	s.Met(owner, Cache{Synced: at("200")})
	expect(time.Second)
	s.Forget("another")
	expect(0)
}
