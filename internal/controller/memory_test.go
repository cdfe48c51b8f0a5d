// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"rollset.dev/rollset/internal/podcontrol"
)

func TestBackOff(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	tests := map[string]struct {
		// attempts in vain, each after the wait that it had to keep, and a pause behind the last.
		attempts int
		pause    time.Duration
		subject  string
		want     time.Duration
	}{
		"the first attempt is free":                  {attempts: 0, subject: "a"},
		"the second waits":                           {attempts: 1, subject: "a", want: minBackOff},
		"each waits twice as long":                   {attempts: 4, subject: "a", want: 8 * minBackOff},
		"but not for ever":                           {attempts: 30, subject: "a", want: maxBackOff},
		"time passes":                                {attempts: 3, pause: 3 * time.Second, subject: "a", want: time.Second},
		"another attempt is free":                    {attempts: 5, subject: "b"},
		"a clock that jumps back does not add to it": {attempts: 1, pause: -time.Hour, subject: "a", want: minBackOff},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b backOff
			now := start
			for range tt.attempts {
				now = now.Add(b.wait("a", now))
				b.failed("a", now)
			}
			if got := b.wait(tt.subject, now.Add(tt.pause)); got != tt.want {
				t.Errorf("wait = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestBackOffStartsAgainAfterALongTime(t *testing.T) {
	t.Parallel()
	var b backOff
	now := time.Unix(1000, 0)
	for range 10 {
		b.failed("a", now)
	}
	now = now.Add(3 * maxBackOff)
	b.failed("a", now)
	if got := b.wait("a", now); got != minBackOff {
		t.Errorf("wait = %v, want %v", got, minBackOff)
	}
}

func TestRefusalLastsUntilAWriteSucceeds(t *testing.T) {
	t.Parallel()
	var r refusal
	now := time.Unix(1000, 0)
	r.note("1", now, podcontrol.Tally{Done: 3, Failed: 1, Err: errors.New("full")})
	if r.message != "full" || r.wait("1", now) != minBackOff {
		t.Errorf("refusal = %+v, want one to wait for", r)
	}
	r.note("1", now, podcontrol.Tally{})
	if r.message != "full" {
		t.Error("the refusal is forgotten without an attempt")
	}
	if r.wait("2", now) != 0 {
		t.Error("another spec has to wait")
	}
	r.note("1", now, podcontrol.Tally{Done: 1})
	if r != (refusal{}) {
		t.Errorf("refusal = %+v after a success, want none", r)
	}
}

func TestDefiniteRefusals(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"quota":                  {apierrors.NewForbidden(pods, "web-1", errors.New("exceeded quota")), true},
		"an invalid template":    {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web-1", nil), true},
		"a conflict":             {apierrors.NewConflict(pods, "web-1", errors.New("later")), false},
		"too many requests":      {apierrors.NewTooManyRequests("later", 1), false},
		"trouble of the server":  {apierrors.NewInternalError(errors.New("no webhook")), false},
		"no answer":              {context.DeadlineExceeded, false},
		"one with a name before": {fmt.Errorf("create pod web-1: %w", apierrors.NewForbidden(pods, "web-1", nil)), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r refusal
			r.note("1", time.Unix(1000, 0), podcontrol.Tally{Failed: 1, Err: c.err})
			if r.definite != c.want {
				t.Errorf("a definite refusal is %t, want %t", r.definite, c.want)
			}
		})
	}
}

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
