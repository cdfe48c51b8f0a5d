// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/status"
)

// inStep returns an observation at the second of four steps, which keeps half of the pods.
func inStep(state string, phase v1beta1.RolloutPhase, change func(*snapshot.Rollout)) *snapshot.Set {
	snap := snapshottest.Parse("random R=4 v1>v2", state)
	snap.Rollout = snapshot.Rollout{Keeps: 2, Next: &v1beta1.RolloutStatus{
		Revision: "v2", Step: 2, Steps: 4, Phase: phase, Since: &metav1.Time{Time: snap.Now},
	}}
	if change != nil {
		change(&snap.Rollout)
	}
	return snap
}

// until returns when a phase ends.
func until(wait time.Duration) func(*snapshot.Rollout) {
	return func(r *snapshot.Rollout) {
		r.Next.Until, r.Wake = &metav1.Time{Time: snapshottest.Now().Add(wait)}, wait
		r.Closed = []string{"A", "B"}
	}
}

func failed(r *snapshot.Rollout) { r.Failure = "gate A is False: 3% errors" }

func TestSteps(t *testing.T) {
	t.Parallel()
	const half = "a:v2+ b:v2+ c:v1+ d:v1+"
	for name, tc := range map[string]struct {
		snap         *snapshot.Set
		rollback     bool
		paused       bool
		want         string
		wantBlocking status.Blocking
		wantVerdict  string
	}{
		"rolling": {
			snap: inStep("a:v2+ b:v2. c:v1+ d:v1+", v1beta1.RolloutRolling, nil), wantBlocking: status.BlockedByPod,
			want: `
				Ready=False RollingUpdate: step 2 of 4: 2 of 4 pods updated; waiting for web-b: not started yet on node node-b
				Progressing=True RollingUpdate: step 2 of 4: 2 of 4 pods updated; waiting for web-b: not started yet on node node-b`,
		},
		"soaking": {
			snap: inStep(half, v1beta1.RolloutSoaking, until(time.Minute)), wantBlocking: status.BlockedBySoak,
			want: `
				Ready=False Soaking: step 2 of 4: 2 of 4 pods updated; soaking until 03:05:05Z
				Progressing=True Soaking: step 2 of 4: 2 of 4 pods updated; soaking until 03:05:05Z`,
		},
		"soaking for days": {
			snap: inStep(half, v1beta1.RolloutSoaking, until(48*time.Hour)), wantBlocking: status.BlockedBySoak,
			want: `
				Ready=False Soaking: step 2 of 4: 2 of 4 pods updated; soaking until 2026-01-04T03:04:05Z
				Progressing=True Soaking: step 2 of 4: 2 of 4 pods updated; soaking until 2026-01-04T03:04:05Z`,
		},
		"soaking, and another pod breaks": {
			snap: inStep("a:v2+ b:v2+ c:v1, d:v1+", v1beta1.RolloutSoaking, until(time.Minute)), wantBlocking: status.BlockedByPod,
			want: `
				Ready=False Soaking: step 2 of 4: 2 of 4 pods updated; waiting for web-c: not started yet on node node-c; the partition keeps it at revision v1
				Progressing=True Soaking: step 2 of 4: 2 of 4 pods updated; waiting for web-c: not started yet on node node-c; the partition keeps it at revision v1`,
		},
		"gated": {
			snap: inStep(half, v1beta1.RolloutGated, until(time.Minute)), wantBlocking: status.BlockedByGate,
			want: `
				Ready=False AwaitingGate: step 2 of 4: 2 of 4 pods updated; waiting for gate A, B until 03:05:05Z
				Progressing=True AwaitingGate: step 2 of 4: 2 of 4 pods updated; waiting for gate A, B until 03:05:05Z`,
		},
		"paused": {
			snap: inStep(half, v1beta1.RolloutPaused, nil), wantBlocking: status.BlockedByPromotion,
			want: `
				Ready=False AwaitingPromotion: step 2 of 4: 2 of 4 pods updated; waiting for annotation apps.rollset.dev/promote=v2/2
				Progressing=Unknown AwaitingPromotion: step 2 of 4: 2 of 4 pods updated; waiting for annotation apps.rollset.dev/promote=v2/2`,
		},
		"promoted before the step began": {
			snap: inStep(half, v1beta1.RolloutPaused, func(r *snapshot.Rollout) { r.Next.IgnoredPromotion = "v2/2" }), wantBlocking: status.BlockedByPromotion,
			want: `
				Ready=False AwaitingPromotion: step 2 of 4: 2 of 4 pods updated; waiting for annotation apps.rollset.dev/promote=v2/2; the one that is there was set before the step began: take it away and set it again
				Progressing=Unknown AwaitingPromotion: step 2 of 4: 2 of 4 pods updated; waiting for annotation apps.rollset.dev/promote=v2/2; the one that is there was set before the step began: take it away and set it again`,
		},
		"failed, and holds": {
			snap: inStep(half, v1beta1.RolloutFailed, failed), wantBlocking: status.BlockedByFailedStep,
			want: `
				Ready=False StepFailed: step 2 of 4: 2 of 4 pods updated; gate A is False: 3% errors
				Progressing=False StepFailed: step 2 of 4: 2 of 4 pods updated; gate A is False: 3% errors
				Stalled=True StepFailed: step 2 of 4: 2 of 4 pods updated; gate A is False: 3% errors`,
		},
		"failed before a pause": {
			snap: inStep(half, v1beta1.RolloutFailed, failed), wantBlocking: status.BlockedByFailedStep, paused: true,
			want: `
				Ready=False StepFailed: step 2 of 4: 2 of 4 pods updated; gate A is False: 3% errors
				Progressing=False StepFailed: step 2 of 4: 2 of 4 pods updated; gate A is False: 3% errors
				Stalled=True StepFailed: step 2 of 4: 2 of 4 pods updated; gate A is False: 3% errors`,
		},
		"failed, and goes back": {
			snap: inStep(half, v1beta1.RolloutFailed, failed), wantBlocking: status.BlockedByFailedStep, rollback: true,
			want: `
				Ready=False StepFailed: step 2 of 4: 2 of 4 pods updated; gate A is False: 3% errors
				Progressing=False StepFailed: step 2 of 4: 2 of 4 pods updated; gate A is False: 3% errors`,
			wantVerdict: "StepFailed: step 2 of 4: gate A is False: 3% errors",
		},
		"all at the revision, and the last step soaks": {
			snap: inStep("a:v2+ b:v2+ c:v2+ d:v2+", v1beta1.RolloutSoaking, func(r *snapshot.Rollout) { until(time.Minute)(r); r.Keeps = 0 }), wantBlocking: status.BlockedBySoak,
			want: `
				Ready=False Soaking: step 2 of 4: 4 of 4 pods updated; soaking until 03:05:05Z
				Progressing=True Soaking: step 2 of 4: 4 of 4 pods updated; soaking until 03:05:05Z`,
		},
		"all steps are done": {
			snap: inStep("a:v2+ b:v2+ c:v2+ d:v1+", v1beta1.RolloutRolling, func(r *snapshot.Rollout) { r.Keeps, r.Next.Step = 0, 5 }), wantBlocking: "guard",
			want: `
				Ready=False RollingUpdate: 3 of 4 pods updated
				Progressing=True RollingUpdate: 3 of 4 pods updated`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(tc.snap)
			in.Previous = before(v1beta1.ReasonRollingUpdate)
			if tc.rollback {
				tc.snap.Spec.UpdateStrategy.RollingUpdate.OnStepFailed = v1beta1.RollbackOnStepFailed
			}
			tc.snap.Spec.UpdateStrategy.RollingUpdate.Paused = tc.paused
			r := status.Compute(in)
			var lines []string
			for line := range strings.Lines(show(&r.Status)) {
				if !strings.HasPrefix(line, "Available") {
					lines = append(lines, line)
				}
			}
			if diff := cmp.Diff(text(tc.want), strings.Join(lines, "")); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if r.Status.Rollout == nil || r.Verdict != tc.wantVerdict {
				t.Errorf("rollout %v, verdict %q, want %q", r.Status.Rollout, r.Verdict, tc.wantVerdict)
			}
			if tc.wantBlocking != "guard" && r.Blocking != tc.wantBlocking {
				t.Errorf("blocked by %q, want %q", r.Blocking, tc.wantBlocking)
			}
			if wake := tc.snap.Rollout.Wake; wake > 0 && (r.RequeueAfter == 0 || r.RequeueAfter > wake) {
				t.Errorf("comes back after %s, not %s", r.RequeueAfter, wake)
			}
		})
	}
}

// TestStepsEnd checks the status of a set that is complete.
func TestStepsEnd(t *testing.T) {
	t.Parallel()
	snap := inStep("a:v2+ b:v2+ c:v2+ d:v2+", v1beta1.RolloutRolling, func(r *snapshot.Rollout) { r.Keeps, r.Next.Step = 0, 5 })
	if r := status.Compute(input(snap)); r.Status.Rollout != nil || r.Status.CurrentRevision != "v2" {
		t.Errorf("rollout %v, current revision %s", r.Status.Rollout, r.Status.CurrentRevision)
	}
}

// TestGates checks the conditions of other clients: those of the step come first, and begin as Unknown.
func TestGates(t *testing.T) {
	t.Parallel()
	snap := inStep("a:v2+ b:v2+ c:v1+ d:v1+", v1beta1.RolloutGated, func(r *snapshot.Rollout) {
		r.Gates, r.Begins, r.Closed = []string{"New", "Old", "Judged"}, []string{"New", "Old"}, []string{"New", "Old"}
	})
	in := input(snap)
	in.Previous = before(v1beta1.ReasonRollingUpdate)
	for _, name := range []string{"Past", "Judged", "Old"} {
		in.Previous.Conditions = append(in.Previous.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: "Fine", Message: "so it is"})
	}
	var got []string
	for _, c := range status.Compute(in).Status.Conditions {
		got = append(got, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	want := []string{
		"Ready=False AwaitingGate", "Available=True MinimumPodsAvailable", "Progressing=True AwaitingGate",
		"New=Unknown StepStarted", "Old=Unknown StepStarted", "Judged=True Fine", "Past=True Fine",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
