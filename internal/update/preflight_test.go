// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	gocmp "cmp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/update"
)

func TestPreflight(t *testing.T) {
	t.Parallel()
	const unclear = "a full quota, a taken name, or a webhook with side effects keeps the API server from showing whether the pod differs from revision v2"
	const refuses = "hold web-a and 2 more: the API server refuses pods of revision v2: denied by policy"
	tests := map[string]struct {
		config   string
		state    string
		answer   *snapshot.Preflight
		want     string
		wantWake time.Duration
	}{
		"the API server was not asked yet": {
			state: "a:v1+ b:v1+ c:v1+",
			want: `preflight v2
				hold web-a and 2 more: asking the API server whether it accepts pods of revision v2`,
		},
		"accepted": {
			state: "a:v1+ b:v1+ c:v1+", answer: &snapshot.Preflight{Pod: &corev1.Pod{}},
			want: `delete web-c (recreate at v2)
				hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it`,
		},
		"accepted, as pods of it show": {
			state: "a:v1+ b:v1+ c:v2+",
			want: `delete web-b (recreate at v2)
				hold web-a: 1 unavailable at revision v2, no more are moved to it`,
		},
		"refused: not even a broken pod is touched": {
			state: "a:v1+ b:v1+ c:v1.", answer: &snapshot.Preflight{Refusal: "denied by policy", Retry: time.Minute},
			want: refuses, wantWake: time.Minute,
		},
		"refused, and asked again under the same words": {
			state: "a:v1+ b:v1+ c:v1.", answer: &snapshot.Preflight{Refusal: "denied by policy"},
			want: "preflight v2\n" + refuses,
		},
		"what the API server would make of a pod of unknown origin was not shown": {
			config: "random R=3 v2", state: "a:v9+ b:v2+ c:v2+", answer: &snapshot.Preflight{Retry: time.Minute},
			want: "hold web-a: " + unclear, wantWake: time.Minute,
		},
		"and is asked again": {
			config: "random R=3 v2", state: "a:v9+ b:v2+ c:v2+", answer: &snapshot.Preflight{},
			want: "preflight v2\nhold web-a: " + unclear,
		},
		"nor what it would make of one of known origin, which differs": {
			config: "random R=3 v2", state: "a:v1+ b:v2+ c:v2+", answer: &snapshot.Preflight{},
			want: "delete web-a (recreate at v2)",
		},
		"nor what it would make of a pod that a new template replaces": {
			state: "a:v9+ b:v2+ c:v2+", answer: &snapshot.Preflight{Retry: time.Minute},
			want: "delete web-a (recreate at v2)",
		},
		"a webhook is down": {
			state: "a:v1+ b:v1+ c:v1+", answer: &snapshot.Preflight{Refusal: "timed out", Failed: true, Retry: time.Second},
			want:     "hold web-a and 2 more: the API server cannot judge pods of revision v2: timed out",
			wantWake: time.Second,
		},
		"but pods of the revision are there": {
			state: "a:v1+ b:v1+ c:v2+", answer: &snapshot.Preflight{Refusal: "timed out", Failed: true, Retry: time.Second},
			want: `delete web-b (recreate at v2)
				hold web-a: 1 unavailable at revision v2, no more are moved to it`,
		},
		"and a broken pod of unknown origin may be what the template gives": {
			state: "a:v9. b:v2+ c:v2+", answer: &snapshot.Preflight{Refusal: "timed out", Failed: true, Retry: time.Second},
			want:     "hold web-a: the API server cannot judge pods of revision v2: timed out",
			wantWake: time.Second,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse(gocmp.Or(tt.config, "random R=3 v1>v2"), tt.state)
			delete(snap.Known, "v9")
			snap.Preflights = nil
			if tt.answer != nil {
				snap.Preflights = map[string]snapshot.Preflight{"v2": *tt.answer}
			}
			got := update.Plan(snap, desired.Of(snap), action.Plan{})
			if diff := cmp.Diff(strings.ReplaceAll(tt.want, "\t", "")+"\n", got.String()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if got.RequeueAfter != tt.wantWake {
				t.Errorf("looks again after %s, want %s", got.RequeueAfter, tt.wantWake)
			}
		})
	}
}

// TestUnansweredDelete moves a pod whose delete may have happened, and no other one in its place.
func TestUnansweredDelete(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"a:v1+ b:v1+ c:v1+": "delete web-a (recreate at v2)\nhold web-c and 1 more: 1 unavailable at revision v2, no more are moved to it",
		"a:v2+ b:v1+ c:v1+": "hold web-c and 1 more: maxUnavailable 1: 2 of 3 pods are available, web-a is not",
	} {
		snap := snapshottest.Parse("random R=3 mu=1 v1>v2", state)
		snap.Refusals = map[attempt.Key]snapshot.Refusal{attempt.OfPod(attempt.Deleting, snap.Replicas[0].Pod): {Message: "no answer", Unsettled: true}}
		p := update.Plan(snap, desired.Of(snap), action.Plan{})
		if got := strings.TrimSpace(p.String()); got != want {
			t.Errorf("%s: plan:\n%s\nwant:\n%s", state, got, want)
		}
	}
}

// TestAskAgain plans for a set without pods, whose new ones come back at the current revision until the update revision is accepted.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	for _, unproven := range []bool{false, true} {
		for retry, want := range map[time.Duration]string{0: "preflight v2\n", time.Minute: ""} {
			snap := snapshottest.Parse("ordinal R=1 v1>v2", "")
			snap.Unproven = unproven
			snap.Preflights = map[string]snapshot.Preflight{"v2": {Refusal: "denied by policy", Retry: retry}}
			got := update.Plan(snap, desired.Of(snap), action.Plan{})
			if got.String() != want || got.RequeueAfter != retry {
				t.Errorf("unproven %t, retry in %s: looks again after %s; %s", unproven, retry, got.RequeueAfter, got.String())
			}
		}
	}
}
