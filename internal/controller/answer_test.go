// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}
	conflict := apierrors.NewConflict(resource, "web-1", errors.New("changed"))
	forbidden := apierrors.NewForbidden(resource, "web-1", errors.New("not allowed"))
	terminating := apierrors.NewForbidden(resource, "web-1", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}

	tests := map[string]struct {
		wait     time.Duration
		err      error
		wantWait time.Duration
		wantErr  bool
	}{
		"all is well":                                 {wait: time.Minute, wantWait: time.Minute},
		"nothing to wait for":                         {},
		"a conflict is looked at again":               {wait: time.Minute, err: fmt.Errorf("write: %w", conflict), wantWait: lookAgain},
		"a refusal is tried again with back-off":      {wait: time.Minute, err: fmt.Errorf("write: %w", forbidden), wantErr: true},
		"a namespace that goes is left to itself":     {wait: time.Minute, err: fmt.Errorf("create: %w", terminating)},
		"a namespace that goes, beside another error": {err: errors.Join(errors.New("event"), fmt.Errorf("create: %w", terminating))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := answer(later(test.wait), test.err)
			if result.RequeueAfter != test.wantWait || (err != nil) != test.wantErr {
				t.Errorf("answer(%v, %v) = %v, %v; want %v, error %t", test.wait, test.err, result.RequeueAfter, err, test.wantWait, test.wantErr)
			}
		})
	}
}

// TestTimersOfLargeSetsWait looks at sets whose pods become available a moment later. The look at a large one has cost more
// than that moment allows for.
func TestTimersOfLargeSetsWait(t *testing.T) {
	t.Parallel()
	for pods, want := range map[int]time.Duration{10: 100 * time.Millisecond, 2_000: 310 * time.Millisecond} {
		s := newRestingSet(t, pods, 0)
		s.set.Spec.MinReadySeconds = 9_801 // the pods became ready 9,800 s before the clock of a restart
		s.change(t, func(int, *corev1.Pod) {})
		s.reconciler.Clock = clocktesting.NewFakePassiveClock(time.Unix(10_000, 9e8))
		timers := s.newLine()
		result, err := s.reconciler.Reconcile(t.Context(), s.set)
		if err != nil {
			t.Fatal(err)
		}
		s.reconciler.Line.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter, Priority: result.Priority}, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.set)})
		if got := s.waits(timers); got != want {
			t.Errorf("%d pods: the next look comes after %s, want %s", pods, got, want)
		}
	}
}
