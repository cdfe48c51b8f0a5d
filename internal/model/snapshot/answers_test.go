// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

// TestUnmovable lets the delete of a pod fail. If the API server did not answer, the pod may be on its way out.
func TestUnmovable(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{}
	k := attempt.OfPod(attempt.Deleting, pod)
	for unsettled, want := range map[bool]bool{false: true, true: false} {
		answers := snapshot.Answers{Refusals: map[attempt.Key]snapshot.Refusal{k: {Message: "no", Retry: time.Minute, Unsettled: unsettled}}}
		if _, unmovable := answers.Unmovable(pod); unmovable != want || !answers.LeavesAside(k) {
			t.Errorf("unsettled %t: unmovable %t, left aside %t", unsettled, unmovable, answers.LeavesAside(k))
		}
	}
}

// TestRefusesCreate lets creates fail. A refusal is that of one identity, or of all. That of a claim is not of pods that need none.
func TestRefusesCreate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		key       attempt.Key
		refusal   snapshot.Refusal
		a, b, all bool
	}{
		"one":        {attempt.Key{Verb: attempt.Creating, Object: "a"}, snapshot.Refusal{Definite: true}, true, false, false},
		"all":        {attempt.AnyCreate(), snapshot.Refusal{Definite: true}, true, true, true},
		"all claims": {attempt.AnyCreate(), snapshot.Refusal{Definite: true, OfClaim: true}, true, true, false},
		"a conflict": {attempt.Key{Verb: attempt.Creating, Object: "a"}, snapshot.Refusal{}, false, false, false},
		"no answer":  {attempt.AnyCreate(), snapshot.Refusal{}, false, false, false},
	} {
		answers := snapshot.Answers{Refusals: map[attempt.Key]snapshot.Refusal{tt.key: tt.refusal}}
		if a, b, all := answers.RefusesCreate("a"), answers.RefusesCreate("b"), answers.RefusesAll(); a != tt.a || b != tt.b || all != tt.all {
			t.Errorf("%s: refuses a %t, b %t, all %t", name, a, b, all)
		}
	}
}
