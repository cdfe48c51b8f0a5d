// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/update"
)

// TestGuardCountsSuccessors has a broken pod, and places on their way to the update revision: only that of a pod whose successor comes.
func TestGuardCountsSuccessors(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"b:v1x$ c:v1,$":       "hold web-c: 1 unavailable at revision v2, no more are moved to it\n",
		"a:v1x b:v1x$ c:v1,$": "hold web-c: 1 unavailable at revision v2, no more are moved to it\n",
		"a:v1x c:v1,$":        "delete web-c (recreate at v2)\n",
	} {
		snap := snapshottest.Parse("random R=2 mu=1 reached=2 claims v1>v2", state)
		p := update.Plan(snap, desired.Of(snap), action.Plan{})
		if diff := cmp.Diff(want, p.String()); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", state, diff)
		}
	}
}

// TestGuardCountsSurge creates a pod beside a broken one that is to move. Surge comes on top of what the guard allows, and no other pod does.
func TestGuardCountsSurge(t *testing.T) {
	t.Parallel()
	for surge, want := range map[bool]string{
		false: "hold web-a: 1 unavailable at revision v2, no more are moved to it\n",
		true:  "delete web-a (recreate at v2)\n",
	} {
		snap := snapshottest.Parse("random R=3 mu=1 surge=1 claims v1>v2", "a:v1,$ b:v2+$")
		var scaling action.Plan
		scaling.Add(action.Create{ID: "new", Revision: "v2", Surge: surge})
		p := update.Plan(snap, desired.Of(snap), scaling)
		if diff := cmp.Diff(want, p.String()); diff != "" {
			t.Errorf("surge %t: plan (-want +got):\n%s", surge, diff)
		}
	}
}

// TestBudget plans beside pods and places that do not count alike.
func TestBudget(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ config, state, want string }{
		"a pod that has ended holds its place, so that surge is not too much": {
			"random R=3 mu=0 surge=3 v1>v2", "a:v1+ b:v1! c:v1+ x:v2, y:v2,",
			"hold web-c and 1 more: 2 unavailable at revision v2, no more are moved to it",
		},
		"the claims of a lost pod are not the lowest pod in order": {
			"ordered R=4 mu=1 claims v1>v2", "0:- 1:v2x$ 2:v1,$ 3:v2+$", "hold web-2: 2 unavailable at revision v2, no more are moved to it",
		},
		"a place whose pod is refused holds pods that serve": {
			"random R=4 mu=1 refused v1>v2", "a:v1+ b:v1+ c:v2+", "hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
		},
		"and no broken ones": {
			"random R=4 mu=1 refused v1>v2", "a:v1+ b:v1, c:v2+",
			"delete web-b (recreate at v2)\nhold web-a: 2 unavailable at revision v2, no more are moved to it",
		},
		"surge that starts is waited for": {
			"ordinal R=2 mu=1 surge=1 refused v1>v2", "0:v1+ 1:v1+ 2:v2.*", "hold web-1 and 1 more: surge comes first",
		},
		"unless its ordinal is out of range": {
			"ordinal R=2 mu=1 surge=1 refused v1>v2", "0:v1+ 1:v1+ 5:v2.*",
			"delete web-1 (recreate at v2)\nhold web-0: 1 unavailable at revision v2, no more are moved to it",
		},
		"the first unavailable pod is named, and not the one that moves": {
			"ordinal R=4 p=1 mu=2 v1>v2", "0:v1, 1:v1, 2:v1+ 3:v1+",
			"delete web-1 (recreate at v2)\nhold web-3 and 1 more: maxUnavailable 2: 2 of 4 pods are available, web-0 and 1 more are not\n" +
				"hold web-0: it is not ready, and the partition keeps it at revision v1",
		},
	} {
		snap := snapshottest.Parse(tt.config, tt.state)
		w := desired.Of(snap)
		p := update.Plan(snap, w, scaled(snap, w))
		if diff := cmp.Diff(tt.want+"\n", p.String()); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", name, diff)
		}
	}
}

// TestGoesBack has more broken pods at the update revision than may be. They stay if they have worked there, and while another one is ready.
func TestGoesBack(t *testing.T) {
	t.Parallel()
	const stay = "hold web-0: 3 unavailable at revision v2, no more are moved to it\n"
	for _, tt := range []struct {
		state  string
		worked bool
		want   string
	}{
		{"0:v1+ 1:v2, 2:v2, 3:v2,", false, "delete web-2 (recreate at v1)\nhold web-1 and 1 more: 1 unavailable at revision v1, no more are moved to it\n"},
		{"0:v1+ 1:v2, 2:v2, 3:v2,", true, stay},
		{"0:v1+ 1:v2, 2:v2, 3:v2r", false, stay},
		{"0:v1+ 1:v2, 2:v2, 3:v2x", false, "hold web-1 and 1 more: 1 unavailable at revision v1, no more are moved to it\n"},
	} {
		snap := snapshottest.Parse("ordinal R=4 mu=1 v1>v2", tt.state)
		for i := range snap.Replicas {
			if r := &snap.Replicas[i]; r.Terminating {
				r.Ready = true // until its containers have ended
			}
			if pod := snap.Replicas[i].Pod; tt.worked {
				started := metav1.NewTime(snap.Now.Add(-2 * time.Hour))
				lost := metav1.NewTime(snap.Now.Add(-time.Hour))
				pod.Status.StartTime = &started
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: lost}}
			}
		}
		p := update.Plan(snap, desired.Of(snap), action.Plan{})
		if diff := cmp.Diff(tt.want, p.String()); diff != "" {
			t.Errorf("%s, worked %t: plan (-want +got):\n%s", tt.state, tt.worked, diff)
		}
	}
}

// TestNoWaitForSurgeThatIsRefused moves a pod although surge is about to be created once more, which the API server refused before.
func TestNoWaitForSurgeThatIsRefused(t *testing.T) {
	t.Parallel()
	for definite, want := range map[bool]string{true: "delete web-1 (recreate at v2)\nhold web-0: 1 unavailable at revision v2, no more are moved to it\n", false: "hold web-1 and 1 more: surge comes first\n"} {
		snap := snapshottest.Parse("ordinal R=2 mu=1 surge=1 v1>v2", "0:v1+ 1:v1+")
		snap.Refusals = map[attempt.Key]snapshot.Refusal{{Verb: attempt.Creating, Object: "2"}: {Message: "denied", Definite: definite}}
		w := desired.Of(snap)
		p := update.Plan(snap, w, scaled(snap, w))
		if diff := cmp.Diff(want, p.String()); diff != "" {
			t.Errorf("definite %t: plan (-want +got):\n%s", definite, diff)
		}
	}
}

// TestOnlyWhatIsLackingMoves has two broken pods, and one pod is lacking. While scaling deletes pods, the other one may be deleted next.
func TestOnlyWhatIsLackingMoves(t *testing.T) {
	t.Parallel()
	for rests, want := range map[bool]string{true: "delete web-b (recreate at v2)\n", false: "delete web-b (recreate at v2)\ndelete web-a (recreate at v2)\n"} {
		snap := snapshottest.Parse("random R=3 mu=2 v1>v2", "a:v1, b:v1, c:v2+")
		w := desired.Of(snap)
		w.Rests, w.Short = rests, map[string]int{"v2": 1}
		p := update.Plan(snap, w, action.Plan{})
		if diff := cmp.Diff(want, p.String()); diff != "" {
			t.Errorf("rests %t: plan (-want +got):\n%s", rests, diff)
		}
	}
}
