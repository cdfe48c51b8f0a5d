// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package action_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
)

// TestActions names every action by its key, its subject and its line in logs.
func TestActions(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-a", UID: "p", ResourceVersion: "7"}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-web-a", UID: "c", ResourceVersion: "8"}}
	tests := []struct {
		action  action.Action
		key     attempt.Key
		subject string
		seen    string
		line    string
	}{
		{action.Create{ID: "a", Revision: "v1", Reason: "why"}, attempt.Key{Verb: attempt.Creating, Object: "a"}, "web-a", "", "create a at v1 (why)"},
		{action.Delete{Pod: pod, Reason: "why"}, attempt.OfPod(attempt.Deleting, pod), "web-a", "7", "delete web-a (why)"},
		{action.Adopt{Pod: pod}, attempt.OfPod(attempt.Adopting, pod), "web-a", "7", "adopt web-a (the selector matches it)"},
		{action.Release{Pod: pod}, attempt.OfPod(attempt.Releasing, pod), "web-a", "7", "release web-a (the selector does not match it)"},
		{action.Relabel{Pod: pod, Revision: "v1"}, attempt.OfPod(attempt.Relabeling, pod), "web-a", "7", "relabel web-a to v1 (it is what the template gives)"},
		{action.Unmark{Pod: pod, Reason: "podsToDelete no longer names it"}, attempt.OfPod(attempt.Unmarking, pod), "web-a", "7", "unmark web-a (podsToDelete no longer names it)"},
		{action.CloseGate{Pod: pod, Reason: "why"}, attempt.OfPod(attempt.Closing, pod), "web-a", "7", "close gate of web-a (why)"},
		{action.OpenGate{Pod: pod, Reason: "why"}, attempt.OfPod(attempt.Opening, pod), "web-a", "7", "open gate of web-a (why)"},
		{action.Resize{Pod: pod, Revision: "v1"}, attempt.OfPod(attempt.Resizing, pod), "web-a", "7", "resize web-a to the resources of v1"},
		{action.SetState{Pod: pod, State: "Normal", Reason: "why"}, attempt.OfPod(attempt.SettingState, pod), "web-a", "7", "set web-a to Normal (why)"},
		{action.CreateClaims{ID: "a", Reason: "why"}, attempt.Key{Verb: attempt.MakingClaims, Object: "a"}, "web-a", "", "create claims of a (why)"},
		{action.OwnClaim{Claim: claim, Reason: "why"}, attempt.Key{Verb: attempt.OwningClaim, Object: "c"}, "data-web-a", "8", "disown claim data-web-a (why)"},
		{action.ChangeClaim{Claim: claim, Class: new("gold")}, attempt.Key{Verb: attempt.ModifyingClaim, Object: "c"}, "data-web-a", "8", "give claim data-web-a the volume attributes class gold"},
		{action.ChangeClaim{Claim: claim, Class: new("")}, attempt.Key{Verb: attempt.ModifyingClaim, Object: "c"}, "data-web-a", "8", "take the volume attributes class off claim data-web-a"},
		{action.ChangeClaim{Claim: claim, Size: new(resource.MustParse("2Gi"))}, attempt.Key{Verb: attempt.GrowingClaim, Object: "c"}, "data-web-a", "8", "grow claim data-web-a to 2Gi"},
		{action.DeleteClaim{Claim: claim, Reason: "why"}, attempt.Key{Verb: attempt.DeletingClaim, Object: "c"}, "data-web-a", "8", "delete claim data-web-a (why)"},
		{action.Preflight{Revision: "v1"}, attempt.Key{Verb: attempt.Preflighting, Object: "v1"}, "web-v1", "", "preflight v1"},
	}
	for _, tt := range tests {
		if got := action.KeyOf(tt.action); got != tt.key {
			t.Errorf("KeyOf(%s) = %v, want %v", tt.action, got, tt.key)
		}
		if got := action.Subject("web", tt.action); got != tt.subject {
			t.Errorf("Subject(%s) = %s, want %s", tt.action, got, tt.subject)
		}
		if got := action.SeenAt(tt.action); got != tt.seen {
			t.Errorf("SeenAt(%s) = %s, want %s", tt.action, got, tt.seen)
		}
		if got := tt.action.String(); got != tt.line {
			t.Errorf("%s, want %s", got, tt.line)
		}
	}
}

// TestHoldsOfOneKind keeps the first and counts the others, unless a user asks for all.
func TestHoldsOfOneKind(t *testing.T) {
	t.Parallel()
	hold := func(p *action.Plan) {
		p.Hold(action.HeldByBudget, "web-a", "%d unavailable", 1)
		p.Hold(action.HeldByBudget, "web-b", "%d unavailable", 1)
		p.Hold(action.HeldByOrder, "web-b", "web-a comes first")
	}
	var first action.Plan
	hold(&first)
	want := "hold web-a and 1 more: 1 unavailable\nhold web-b: web-a comes first\n"
	if diff := cmp.Diff(want, first.String()); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}
	every := action.Plan{EveryHold: true}
	hold(&every)
	want = "hold web-a: 1 unavailable\nhold web-b: 1 unavailable\nhold web-b: web-a comes first\n"
	if diff := cmp.Diff(want, every.String()); diff != "" {
		t.Errorf("every hold (-want +got):\n%s", diff)
	}
}

// TestMoves tells moves from deletions for other reasons.
func TestMoves(t *testing.T) {
	t.Parallel()
	for want, a := range map[bool]action.Action{true: action.Delete{Cause: action.Move}, false: action.Delete{}} {
		if p := (action.Plan{Actions: []action.Action{action.Preflight{}, a}}); p.Moves() != want {
			t.Errorf("%v: moves %t", a, p.Moves())
		}
	}
}

func TestSooner(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b, want time.Duration }{
		{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {1, 2, 1}, {2, 1, 1}, {2, -1, 2}, {-1, 2, 2},
	} {
		if got := action.Sooner(tt.a, tt.b); got != tt.want {
			t.Errorf("Sooner(%d, %d) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	p := action.Plan{RequeueAfter: 5}
	q := action.Plan{RequeueAfter: 3, Aside: []attempt.Key{attempt.AnyCreate()}}
	q.Add(action.Delete{Pod: &corev1.Pod{}, Cause: action.ScaleDown})
	q.Hold(action.HeldByBudget, "web-a", "why")
	if p.Join(q); len(p.Actions) != 1 || len(p.Held) != 1 || len(p.Aside) != 1 || p.RequeueAfter != 3 || p.Empty() {
		t.Errorf("joined: %+v", p)
	}
}
