// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package scale_test

import (
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
	"rollset.dev/rollset/internal/scale"
)

// TestBlockedPlaces asks the API server again about a template that it refused, although no create can show whether it still does.
func TestBlockedPlaces(t *testing.T) {
	t.Parallel()
	const taken = "hold web-0: the name is taken"
	for name, tt := range map[string]struct {
		answer snapshot.Preflight
		want   string
	}{
		"accepted":             {snapshot.Preflight{}, taken},
		"refused a moment ago": {snapshot.Preflight{Refusal: "no", Retry: time.Minute}, taken},
		"refused":              {snapshot.Preflight{Refusal: "no"}, "preflight v1\n" + taken},
		"not judged":           {snapshot.Preflight{Refusal: "no", Failed: true}, taken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse("ordinal R=1 v1", "")
			snap.Blocked = map[string]snapshot.Block{"0": {Reason: "the name is taken"}}
			snap.Preflights = map[string]snapshot.Preflight{"v1": tt.answer}
			p := scale.Up(snap, desired.Of(snap), action.Plan{})
			if diff := cmp.Diff(tt.want, strings.TrimSpace(p.String())); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if p.RequeueAfter != tt.answer.Retry {
				t.Errorf("looks again after %v, want %v", p.RequeueAfter, tt.answer.Retry)
			}
		})
	}
}

// TestUnansweredDelete keeps a pod whose ordinal is out of range while a member may be deleted already.
func TestUnansweredDelete(t *testing.T) {
	t.Parallel()
	for _, unsettled := range []bool{false, true} {
		snap := snapshottest.Parse("ordinal R=2 mu=1 start=1 v1", "0:v1+ 1:v1+")
		snap.Refusals = map[attempt.Key]snapshot.Refusal{attempt.OfPod(attempt.Deleting, snap.Replicas[1].Pod): {Message: "no answer", Unsettled: unsettled}}
		p := scale.Down(snap, desired.Of(snap))
		if deletes := len(p.Actions) > 0; deletes == unsettled {
			t.Errorf("unsettled %t: plan:\n%s", unsettled, p.String())
		}
	}
}

// TestMembersThatStart scales down and up at once. The pod out of range waits for those that stay, and the place waits for it, until no
// member is on its way.
func TestMembersThatStart(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"0:v1+ 1:v1x": "hold web-0: its ordinal is out of range; it must be deleted before another pod is created",
		"0:v1+ 1:v1.": "hold web-0: its ordinal is out of range; it must be deleted before another pod is created",
		"0:v1+ 1:v1,": "create 2 at v1 (missing)",
	} {
		snap := snapshottest.Parse("ordinal R=2 mu=1 start=1 v1", state)
		w := desired.Of(snap)
		p := scale.Up(snap, w, scale.Down(snap, w))
		if diff := cmp.Diff(want, strings.TrimSpace(p.String())); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", state, diff)
		}
	}
}

// TestSurgeIsNoMember deletes a pod whose ordinal is out of range beside surge that is not available, or that may be deleted already.
func TestSurgeIsNoMember(t *testing.T) {
	t.Parallel()
	for _, surge := range []string{"3:v2.*", "3:v2+*"} {
		snap := snapshottest.Parse("ordinal R=2 mu=1 surge=1 start=1 v1>v2", "0:v1+ 1:v1+ "+surge)
		surges := &snap.Replicas[2]
		if surges.Available {
			snap.Refusals = map[attempt.Key]snapshot.Refusal{attempt.OfPod(attempt.Deleting, surges.Pod): {Message: "no answer", Unsettled: true}}
		}
		p := scale.Down(snap, desired.Of(snap))
		if diff := cmp.Diff("delete web-0 (its ordinal is not in use)", strings.TrimSpace(p.String())); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", surge, diff)
		}
	}
}

// TestUnansweredDeleteInOrder creates no pod above one that may be deleted already.
func TestUnansweredDeleteInOrder(t *testing.T) {
	t.Parallel()
	for unsettled, want := range map[bool]string{
		false: "create 2 at v1 (missing)",
		true:  "hold web-2: podManagementPolicy OrderedReady: web-1 is not available: its deletion was not answered",
	} {
		snap := snapshottest.Parse("ordered R=3 v1", "0:v1+ 1:v1+")
		snap.Refusals = map[attempt.Key]snapshot.Refusal{attempt.OfPod(attempt.Deleting, snap.Replicas[1].Pod): {Message: "no answer", Unsettled: unsettled}}
		p := scale.Up(snap, desired.Of(snap), action.Plan{})
		if diff := cmp.Diff(want, strings.TrimSpace(p.String())); diff != "" {
			t.Errorf("unsettled %t: plan (-want +got):\n%s", unsettled, diff)
		}
	}
}

// TestUnansweredDeleteElsewhere creates a pod below one that may be deleted already, and one above a surplus pod that may be.
func TestUnansweredDeleteElsewhere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config, state, want string
		unanswered          int
	}{
		{"ordered R=3 v1", "0:v1+ 2:v1+", "create 1 at v1 (missing)", 1},
		{"ordered R=2 start=1 v1", "0:v1+ 1:v1+", "create 2 at v1 (missing)", 0},
	} {
		snap := snapshottest.Parse(tt.config, tt.state)
		k := attempt.OfPod(attempt.Deleting, snap.Replicas[tt.unanswered].Pod)
		snap.Refusals = map[attempt.Key]snapshot.Refusal{k: {Message: "no answer", Unsettled: true}}
		p := scale.Up(snap, desired.Of(snap), action.Plan{})
		if diff := cmp.Diff(tt.want, strings.TrimSpace(p.String())); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", tt.state, diff)
		}
	}
}

// TestNothingIsWaitedFor plans surge beside a pod that starts. Nothing goes that would wait for it.
func TestNothingIsWaitedFor(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordinal R=3 mu=1 surge=1 v1>v2", "0:v1+ 1:v1+ 2:v1.")
	p := scale.Up(snap, desired.Of(snap), action.Plan{})
	if diff := cmp.Diff("create 3 at v2 (surge for update)", strings.TrimSpace(p.String())); diff != "" || p.RequeueAfter != 0 {
		t.Errorf("looks again after %s; plan (-want +got):\n%s", p.RequeueAfter, diff)
	}
}

// TestRefusedCreate creates no pod while the API server has just refused all, or that one.
func TestRefusedCreate(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]attempt.Key{"any": attempt.AnyCreate(), "this one": {Verb: attempt.Creating, Object: "1"}, "another": {Verb: attempt.Creating, Object: "2"}} {
		snap := snapshottest.Parse("ordinal R=2 v1", "0:v1+")
		snap.Refusals = map[attempt.Key]snapshot.Refusal{k: {Message: "exceeded quota", Retry: time.Minute}}
		if p := scale.Up(snap, desired.Of(snap), action.Plan{}); (len(p.Actions) > 0) != (name == "another") {
			t.Errorf("%s: plan:\n%s", name, p.String())
		}
	}
}

// TestRefusedClaims lacks a pod at each revision, and only the update revision has a claim. A refusal of a claim holds the pod that needs
// it, and none that has it, or needs none.
func TestRefusedClaims(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state   string
		ofClaim bool
		want    string
	}{
		{"", false, "hold web-0 and 1 more: exceeded quota"},
		{"", true, "create 0 at v1 (missing)\nhold web-1: exceeded quota"},
		{"1:-", true, "create 0 at v1 (missing)\ncreate 1 at v2 (missing)"},
	} {
		snap := snapshottest.Parse("ordinal R=2 p=1 claims claimless v1>v2", tt.state)
		snap.Refusals = map[attempt.Key]snapshot.Refusal{attempt.AnyCreate(): {Message: "exceeded quota", Retry: time.Minute, OfClaim: tt.ofClaim}}
		p := scale.Up(snap, desired.Of(snap), action.Plan{})
		if diff := cmp.Diff(tt.want, strings.TrimSpace(p.String())); diff != "" {
			t.Errorf("%q, of a claim %t: plan (-want +got):\n%s", tt.state, tt.ofClaim, diff)
		}
	}
}

// TestUnprovenPodsKeepNoneBack creates a pod above one that serves, although it is not known which images it runs.
func TestUnprovenPodsKeepNoneBack(t *testing.T) {
	t.Parallel()
	for unproven, want := range map[string]string{
		"":         "hold web-1: podManagementPolicy OrderedReady: web-0 is not available: not started yet on node node-0",
		"no proof": "create 1 at v1 (missing)",
	} {
		snap := snapshottest.Parse("ordered R=2 v1", "0:v1r")
		snap.Replicas[0].Unproven = unproven
		p := scale.Up(snap, desired.Of(snap), action.Plan{})
		if diff := cmp.Diff(want, strings.TrimSpace(p.String())); diff != "" {
			t.Errorf("unproven %q: plan (-want +got):\n%s", unproven, diff)
		}
	}
}

// TestOrderNamesNoCause waits for a pod that is ready, and not yet for long enough.
func TestOrderNamesNoCause(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordered R=2 v1", "0:v1r")
	snap.Replicas[0].Pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}}
	p := scale.Up(snap, desired.Of(snap), action.Plan{})
	if diff := cmp.Diff("hold web-1: podManagementPolicy OrderedReady: web-0 is not available", strings.TrimSpace(p.String())); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}
