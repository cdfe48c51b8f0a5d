// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
)

// line writes a State in one line: places, what moves where, what is outside and above.
func line(s *desired.State) string {
	var words []string
	for _, p := range s.Places {
		id := p.ID
		if p.Ordinal < 0 {
			id = "new" // ids are tested where they are made
		}
		word := "+" + id + ":" + p.Revision
		if p.Surge {
			word += "*"
		}
		words = append(words, word)
	}
	for _, m := range s.Candidates {
		word := m.Replica.ID + ">" + m.To
		if m.Named {
			word += "@"
		}
		words = append(words, word)
	}
	for _, r := range s.Going {
		words = append(words, r.ID+" goes")
	}
	for _, revision := range slices.Sorted(maps.Keys(s.Excess)) {
		words = append(words, fmt.Sprintf("%d too many at %s", s.Excess[revision], revision))
	}
	if s.Missing > len(s.Places) {
		words = append(words, fmt.Sprintf("%d missing", s.Missing))
	}
	return strings.Join(words, ", ")
}

func TestOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ config, state, want string }{
		"ordinals: nothing differs":                {"ordinal R=2 v1", "0:v1+ 1:v1+", ""},
		"ordinals: a hole is filled":               {"ordinal R=3 v1", "0:v1+ 2:v1+", "+1:v1"},
		"ordinals: a terminating pod has its name": {"ordinal R=2 v1", "0:v1x 1:v1+", ""},
		"ordinals: the partition keeps the lowest": {"ordinal R=3 p=1 v1>v2", "0:v1+ 1:v1+ 2:v2+", "1>v2, 1 too many at v1"},
		"ordinals: one that was lost below the partition comes back at the current revision": {
			"ordinal R=3 p=1 v1>v2", "1:v2+ 2:v2+", "+0:v1",
		},
		"ordinals: those not in use are outside, the highest first": {"ordinal R=1 v1", "0:v1+ 1:v1+ 5:v1+", "5 goes, 1 goes"},
		"ordinals: beside one that comes at the update revision no other does": {
			"ordinal R=4 reached=4 mu=1 v1>v2", "0:v1+ 1:v2+ 2:v2x", "+3:v1, 0>v2, 1 too many at v1",
		},
		"ordinals: they begin at start":                          {"ordinal R=1 start=5 v1", "0:v1+", "+5:v1, 0 goes"},
		"ordinals: reserved ones are not used":                   {"ordinal R=2 reserve=1 v1", "0:v1+ 1:v1+", "+2:v1, 1 goes"},
		"ordinals: a pod that a user named is replaced":          {"ordinal R=2 v1", "0:v1+@ 1:v1+", "0>v1@"},
		"ordinals: a rollback wants the current revision":        {"ordinal R=2 rejected v1>v2", "0:v1+ 1:v2+", "1>v1, 1 too many at v2"},
		"ordinals: nothing moves in a pause":                     {"ordinal R=2 paused v1>v2", "0:v1+ 1:v1+", ""},
		"ordinals: in a pause pods come at the current revision": {"ordinal R=2 paused v1>v2", "0:v1+", "+1:v1"},
		"ordinals: nothing moves under OnDelete":                 {"ordinal R=2 ondelete v1>v2", "0:v1+ 1:v1+", ""},
		"ordinals: under OnDelete a pod that a user named comes back at the update revision": {
			"ordinal R=2 ondelete v1>v2", "0:v1+@ 1:v1+", "0>v2@",
		},
		"ordinals: in a pause it comes back at its own":        {"ordinal R=2 paused v1>v2", "0:v1+@ 1:v2+@", "0>v1@, 1>v2@"},
		"ordinals: if no template of that is left it stays":    {"ordinal R=2 paused v1>v2", "0:gone+@ 1:v1+", ""},
		"ordinals: outside of a pause it comes at another":     {"ordinal R=2 v1", "0:gone+@ 1:v1+", "0>v1@"},
		"ordinals: a lost template is wanted of no new pod":    {"ordinal R=2 p=2 forgotten v1>v2", "0:v1+", "+1:v2"},
		"ordinals: surge has the next ordinals":                {"ordinal R=2 mu=0 surge=2 v1>v2", "0:v1+ 1:v1+", "+2:v2*, +3:v2*, 0>v2, 1>v2, 2 too many at v1"},
		"ordinals: those that are not reserved":                {"ordinal R=2 mu=0 surge=1 reserve=2 v1>v2", "0:v1+ 1:v1+", "+3:v2*, 0>v2, 1>v2, 2 too many at v1"},
		"ordinals: no more than members that move":             {"ordinal R=2 mu=0 surge=2 v1>v2", "0:v1+ 1:v2+", "+2:v2*, 0>v2, 1 too many at v1"},
		"ordinals: surge waits for a member that is missing":   {"ordinal R=2 mu=0 surge=1 v1>v2", "0:v1+", "+1:v1, 0>v2, 1 too many at v1"},
		"ordinals: and for one that goes":                      {"ordinal R=2 mu=0 surge=1 v1>v2", "0:v1+ 1:v1x", "0>v2, 1 too many at v1"},
		"ordinals: surge serves while a member moves":          {"ordinal R=2 mu=0 surge=1 v1>v2", "0:v1+ 1:v2. 2:v2+*", "0>v2, 1 too many at v1"},
		"ordinals: it goes, the highest first, when none does": {"ordinal R=2 mu=0 surge=2 v1>v2", "0:v2+ 1:v2+ 2:v2+* 3:v2+*", "3 goes, 2 goes"},
		"ordinals: it goes when a scale-down leaves it out":    {"ordinal R=1 mu=0 surge=1 v1>v2", "0:v1+ 1:v1+ 2:v2+*", "0>v2, 2 goes, 1 goes, 1 too many at v1"},
		"random: beside a pod that is missing and surge that is there": {
			"random R=4 mu=0 surge=3 paused claims v1>v2", "a:v1+@$ b:v2+@$ c:v2+@$ x:v1+$*", "+new:v1, +new:v2*, +new:v2*, a>v1@, b>v2@, c>v2@",
		},
		"ordinals: surge in a pause is of the revision of a pod that a user named": {
			"ordinal R=2 mu=0 surge=1 paused v1>v2", "0:v1+ 1:v2+@", "+2:v2*, 1>v2@",
		},
		"ordinals: no more than there are ordinals": {"ordinal R=3 start=2147483646 v1", "", "+2147483646:v1, +2147483647:v1, 3 missing"},
		"ordinals: no surge without a rollout":      {"ordinal R=2 mu=0 surge=1 v1", "0:v1+ 1:v1+", ""},

		"random: nothing differs": {"random R=2 v1", "a:v1+ b:v1+", ""},
		"random: while none works a lost pod comes at the current revision": {"random R=2 mu=0 surge=1 v1>v2", "a:v1+", "+new:v1, +new:v2*, a>v2, 1 too many at v1"},
		"random: it comes at the update revision if a quota refuses pods":   {"random R=2 mu=0 surge=1 refused v1>v2", "a:v1+", "+new:v2, a>v2, 1 too many at v1"},
		"random: a pod is missing":                    {"random R=2 v1", "a:v1+", "+new:v1"},
		"random: a terminating pod is missed at once": {"random R=2 v1", "a:v1x b:v1+", "+new:v1"},
		"random: one with claims holds its place":     {"random R=2 claims v1", "a:v1x$ b:v1+$", ""},
		"random: a finished pod holds its place":      {"random R=2 v1", "a:v1! b:v1+", ""},
		"random: too many are above":                  {"random R=1 v1", "a:v1+ b:v1+", "b goes"},
		"random: all of the old revision may move":    {"random R=2 v1>v2", "a:v1+ b:v1+", "a>v2, b>v2, 2 too many at v1"},
		"random: any pods satisfy the partition":      {"random R=3 p=1 v1>v2", "a:v1+ b:v1+ c:v2+", "a>v2, b>v2, 1 too many at v1"},
		"random: surge comes at what is lacking, whichever pods a user named": {
			"random R=4 p=2 mu=0 surge=2 v1>v2", "a:v2+@ b:v1+@ c:v1+ d:v2+", "+new:v1*, +new:v2*, a>v2@, b>v1@",
		},
		"random: surge comes for those that move":  {"random R=2 surge=1 v1>v2", "a:v1+ b:v1+", "+new:v2*, a>v2, b>v2, 2 too many at v1"},
		"random: surge that is there is not above": {"random R=2 surge=1 v1>v2", "a:v1+ b:v1+ c:v2.", "a>v2, b>v2, 2 too many at v1"},
		"random: as much surge comes as maxSurge says": {
			"random R=4 surge=3 v1>v2", "a:v1+ b:v1+ c:v1+ d:v1+", "+new:v2*, +new:v2*, +new:v2*, a>v2, b>v2, c>v2, d>v2, 4 too many at v1",
		},
		"random: none comes while as many pods are not available": {
			"random R=4 surge=1 claims v1>v2", "a:v1+$ b:v1+$ c:v2.$ d:v2.$", "a>v2, b>v2, 2 too many at v1",
		},
		"random: none comes while one is not where none may be": {
			"random R=4 mu=0 surge=1 claims v1>v2", "a:v1+$ b:v1+$ c:v1+$ d:v2.$", "a>v2, b>v2, c>v2, 3 too many at v1",
		},
		"random: surge that has ended is not deleted for surge that a user named": {
			"random R=2 surge=2 claims v1>v2", "a:v1+$ b:v1+$ c:v2!@$* d:v2+$*", "a>v2, b>v2, 2 too many at v1",
		},
		"random: in a pause surge stays for a pod that a user named": {
			"random R=2 surge=1 paused claims v1>v2", "a:v1+@$ b:v0.$* c:v1+$", "a>v1@",
		},
		"random: surge comes at the revision of that pod":          {"random R=2 surge=1 mu=0 paused claims v1>v2", "a:v2+@$ b:v1+$", "+new:v2*, a>v2@"},
		"random: the newest goes in a pause that stops no rollout": {"random R=1 surge=1 paused v1", "a:v1+ b:v0+", "b goes"},
		"random: and in one that stops a rollout with claims":      {"random R=2 surge=1 paused claims v1>v2", "a:v1+$ b:v2+$ c:v1+$", "c goes"},
		"random: no surge when nothing moves":                      {"random R=2 surge=1 v1>v2", "a:v2+ b:v2+", ""},
		"random: surge that a hook has prepared goes while as many pods are available as an update leaves": {
			"random R=3 mu=1 claims hooked v2", "a:v2+$ b:v2+$ c:v2.$ d:v2+^$*", "d goes",
		},
		"random: surge that a hook has prepared goes before surge that broke": {
			"random R=3 mu=0 surge=1 claims hooked v1>v2", "a:v1+$ b:v1+$ c:v1+$ d:v2+^$* e:v2.$*", "a>v2, b>v2, c>v2, d goes, 3 too many at v1",
		},
		"random: and before surge of another template": {
			"random R=3 mu=0 surge=1 claims hooked v1>v2", "a:v1+$ b:v1+$ c:v1+$ d:v2+^$* e:v0.$*", "a>v2, b>v2, c>v2, d goes, 3 too many at v1",
		},
		"random: it serves again if fewer are":          {"random R=3 mu=1 claims hooked v2", "a:v2+$ b:v2.$ c:v2.$ d:v2+^$*", ""},
		"random: strays move to where pods are lacking": {"random R=2 v1>v2", "a:v0+ b:v2+", "a>v2, 1 too many at v0"},
		"random: a stray moves to the revision that mounts its claims": {
			"random R=3 p=2 claims claimless v1>v3", "a:v1+ b:v1! c:v2+$", "c>v3, 1 too many at v2",
		},
		"random: a pod that a user named leaves the place at the update revision to a stray with claims": {
			"random R=3 p=2 claims claimless v1>v3", "a:v1+ b:v1+@ c:v2+$", "b>v1@, c>v3, 1 too many at v2",
		},
		"random: a stray that a user named comes back where its claims are mounted": {
			"random R=3 p=2 claims claimless v1>v3", "a:v1+ b:v1! c:v2+@$", "c>v3@",
		},
		"random: a stray loses its claims if no pod of the update revision is lacking": {
			"random R=3 p=2 claims claimless v1>v3", "a:v1+ b:v3+$ c:v2+$", "c>v1, 1 too many at v2",
		},
		"random: a lost pod comes at the current revision if too few are at it": {
			"random R=3 p=2 v1>v2", "a:v1+ b:v2+", "+new:v1",
		},
		"random: while the guard holds it does so too if a broken pod of the update revision is to go back": {
			"random R=4 p=1 mu=1 surge=2 v1>v2", "a:v1+ b:v2. c:v2. d:v2. e:v2.", "+new:v1, b>v1, c>v1, d>v1, e>v1, 1 too many at v2",
		},
		"random: nor beside a terminating pod that comes there": {
			"random R=4 mu=1 claims v1>v2", "a:v1+$ b:v2+$ c:v2x$ d:-", "+new:v1, a>v2, 1 too many at v1",
		},
		"random: a pod that terminates for too long is not on its way": {
			"random R=4 mu=1 claims v1>v2", "a:v1+$ b:v2+$ c:v2X$ d:-", "+new:v2, a>v2, 1 too many at v1",
		},
		"random: nor has surge that terminates a successor": {
			"random R=4 mu=1 claims v1>v2", "a:v1+$ b:v2+$ c:v2x$* d:v2+$ e:-", "+new:v2, a>v2, 1 too many at v1",
		},
		"random: beside one that comes at the update revision no other does": {
			"random R=4 reached=4 claims v1>v2", "a:v1x$ b:v1+$ c:v1+$", "+new:v1, b>v2, c>v2, 2 too many at v1",
		},
		"random: a pod that a user named is replaced": {"random R=2 v1", "a:v1+@ b:v1+", "a>v1@"},
		"random: under OnDelete a pod that a user named comes back at the update revision": {
			"random R=2 ondelete v1>v2", "a:v1+@ b:v1+", "a>v2@",
		},
		"random: nothing moves in a pause": {"random R=2 paused v1>v2", "a:v1+ b:v1+", ""},
		"random: each surge pod in a pause is of the revision of one that a user named": {
			"random R=3 mu=0 surge=3 paused claims v1>v2", "a:v1+@$ b:v2+@$ c:v2+@$", "+new:v1*, +new:v2*, +new:v2*, a>v1@, b>v2@, c>v2@",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := line(desired.Of(snapshottest.Parse(tt.config, tt.state))); got != tt.want {
				t.Errorf("%s of %s:\n got %s\nwant %s", tt.config, tt.state, got, tt.want)
			}
		})
	}
}

// TestUnansweredDeletesOfSurplus sends a pod that may be deleted already only as far as the others suffice without all such pods. None of
// them counts twice.
func TestUnansweredDeletesOfSurplus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state string
		// first is the first of the pods whose deletion was not answered.
		first     int
		unsettled bool
		want      string
	}{
		{"a:v1. b:v1+ c:v1+ d:v1+", 2, false, "a goes, d goes"},
		{"a:v1. b:v1+ c:v1+ d:v1+", 2, true, "a goes"},
		{"a:v1+ b:v1+ c:v1+", 2, true, "c goes"},
		{"a:v1+ b:v1+ c:v1+ d:v1+", 3, true, "d goes, c goes"},
	} {
		snap := snapshottest.Parse("random R=2 v1", tt.state)
		snap.Refusals = map[attempt.Key]snapshot.Refusal{}
		for _, r := range snap.Replicas[tt.first:] {
			snap.Refusals[attempt.OfPod(attempt.Deleting, r.Pod)] = snapshot.Refusal{Message: "no answer", Unsettled: tt.unsettled}
		}
		if got := line(desired.Of(snap)); got != tt.want {
			t.Errorf("%s, unsettled %t: got %s, want %s", tt.state, tt.unsettled, got, tt.want)
		}
	}
}

// TestManyMissing bounds what one State names, whatever spec.replicas says.
func TestManyMissing(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"ordinal R=2147483647 v1", "random R=2147483647 v1"} {
		s := desired.Of(snapshottest.Parse(config, ""))
		if len(s.Places) != desired.Batch || s.Missing != 2147483647 {
			t.Errorf("%s: %d places, %d missing", config, len(s.Places), s.Missing)
		}
	}
}

func TestComesBackAt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config, state string
		// owed is the revision of the successor of pod 0; empty if the set did not take the pod for one.
		owed string
		// denied is true if the API server refuses pods of the update revision, and unproven if the current revision was never complete.
		denied, unproven bool
		want             string
		wantSame         bool
	}{
		"below the partition":              {config: "ordinal R=2 p=1 v1>v2", state: "0:v1+ 1:v2+", want: "v1", wantSame: true},
		"an ordinal that is not in use":    {config: "ordinal R=1 v1", state: "5:v1+"},
		"a random pod comes under another": {config: "random R=1 v1>v2", state: "a:v1+", want: "v2"},
		"its claims tie it to its name":    {config: "random R=1 claims v1>v2", state: "a:v1+$", want: "v2", wantSame: true},
		"what is refused does not come":    {config: "ordinal R=2 v1>v2", state: "0:v1x 1:v1+", denied: true, want: "v1", wantSame: true},
		"nor if nothing was ever complete": {config: "ordinal R=2 v1>v2", state: "0:v1x 1:v1+", denied: true, unproven: true, want: "v1", wantSame: true},
		"a pause cannot keep a lost one":   {config: "ordinal R=2 paused v1>v2", state: "0:gonex 1:v1+", owed: "gone", want: "v1", wantSame: true},
		"a pause keeps its revision":       {config: "ordinal R=2 paused v1>v2", state: "0:v2x 1:v1+", owed: "v2", want: "v2", wantSame: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse(tt.config, tt.state)
			if tt.owed != "" {
				snap.Replacing = map[string]string{"0": tt.owed}
			}
			if snap.Unproven = tt.unproven; tt.denied {
				snap.Preflights["v2"] = snapshot.Preflight{Refusal: "denied"}
			}
			got, same := desired.Of(snap).ComesBackAt(snap, &snap.Replicas[0])
			if got != tt.want || same != tt.wantSame {
				t.Errorf("ComesBackAt = %q, %t; want %q, %t", got, same, tt.want, tt.wantSame)
			}
		})
	}
}

// TestRefusedMember has a member that a move has emptied, and one whose pod the API server refuses. Only one may come at a revision that
// does not work yet.
func TestRefusedMember(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordinal R=3 mu=1 v1>v2", "1:v1+")
	snap.Replacing = map[string]string{"2": "v2"}
	snap.Refusals = map[attempt.Key]snapshot.Refusal{{Verb: attempt.Creating, Object: "0"}: {Message: "denied", Definite: true}}
	if got, want := line(desired.Of(snap)), "+0:v1, +2:v2, 1>v2, 1 too many at v1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestYieldsAt breaks all pods of a set. Each that is at the current revision has a minute, or the deadline if it has no node.
func TestYieldsAt(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]time.Duration{
		"a:v1, b:v1, c:v2,":   -59 * time.Minute,
		"a:v1. b:v1, c:v2,":   time.Minute,
		"a:v1, b:v1. c:v2,":   time.Minute,
		"!/a:v1, b:v1, c:v2,": -50 * time.Minute,
		"a:v1, !/b:v1, c:v2,": -50 * time.Minute,
		"a:v1, b:v1, !/c:v2,": -59 * time.Minute,
	} {
		snap := snapshottest.Parse("random R=3 v1>v2", state)
		if got := desired.Of(snap).YieldsAt.Sub(snap.Now); got != want {
			t.Errorf("%s: the guard yields in %s, want %s", state, got, want)
		}
	}
}

// TestCurrentRevisionIsTriedFirst has no pod that is ready for an hour, and lacks pods. The guard does not yield before one has come at the
// current revision, unless it has gone for one at the update revision, or the API server refuses it.
func TestCurrentRevisionIsTriedFirst(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state, replacing, refusal string
		unseen                    int
		tried, want               bool
	}{
		"no pod is at it":            {state: "a:v2,"},
		"one is":                     {state: "a:v1,", want: true},
		"one was":                    {state: "a:v2,", tried: true, want: true},
		"one is updated":             {state: "a:v2,", replacing: "v2", want: true},
		"one may have been updated":  {state: "a:v2,", unseen: 1, want: true},
		"one is replaced":            {state: "a:v2,", replacing: "v1"},
		"none could come":            {state: "a:v2,", refusal: "no", want: true},
		"no pod is missing":          {state: "a:v2, b:v2,", want: true},
		"none is at either revision": {state: "a:v0,"},
	} {
		snap := snapshottest.Parse("random R=2 v1>v2", tt.state)
		snap.NoneSince, snap.Unseen, snap.TriedCurrent = snap.Now.Add(-time.Hour), tt.unseen, tt.tried
		if tt.replacing != "" {
			snap.Replacing = map[string]string{"b": tt.replacing}
		}
		snap.Preflights = map[string]snapshot.Preflight{"v1": {Refusal: tt.refusal}}
		if at := desired.Of(snap).YieldsAt; at.IsZero() == tt.want {
			t.Errorf("%s: the guard yields at %v, want %t", name, at, tt.want)
		}
	}
}

// TestChanceLeft has a pod at the current revision from before the update revision was made, an hour ago. It has a minute from when it was
// updated in place to go back, and none if that was earlier, or if it has been there since it was created.
func TestChanceLeft(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		restarting   bool
		waited, want time.Duration
	}{
		{true, 10 * time.Second, 50 * time.Second},
		{true, 2 * time.Hour, 0},
		{false, 0, 0},
	} {
		snap := snapshottest.Parse("random R=3 v1>v2", "a:v1, b:v2, c:v1+")
		snap.Update.Since = snap.Now.Add(-time.Hour).Unix()
		r := &snap.Replicas[0]
		r.Restarting, r.Waited = tt.restarting, tt.waited
		if got := desired.Of(snap).ChanceLeft(snap, r); got != tt.want {
			t.Errorf("restarting %t for %s: %s left, want %s", tt.restarting, tt.waited, got, tt.want)
		}
	}
}

// TestYieldsBesideUpdates has no available pod for an hour. A pod that is updated in place since a moment ago gets no time of its own. One
// that a hook keeps out of service since it was created does.
func TestYieldsBesideUpdates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		updating bool
		state    v1beta1.LifecycleState
		want     time.Duration
	}{
		{false, "", time.Minute},
		{true, "", -59 * time.Minute},
		{true, v1beta1.LifecyclePreparingNormal, time.Minute},
	} {
		snap := snapshottest.Parse("random R=2 v1>v2", "a:v1. b:v2,")
		r := &snap.Replicas[0]
		snap.NoneSince, r.Updating, r.State = snap.Now.Add(-time.Hour), tt.updating, tt.state
		if got := desired.Of(snap).YieldsAt.Sub(snap.Now); got != tt.want {
			t.Errorf("updating %t in state %q: the guard yields in %s, want %s", tt.updating, tt.state, got, tt.want)
		}
	}
}

// TestTheOldestClaimComesBackFirst lacks one pod, and has the claims of two. The first was made a moment ago, and perhaps no pod
// ever used it.
func TestTheOldestClaimComesBackFirst(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("random R=2 v1 claims", "a:- b:- c:v1+$")
	for i, age := range []time.Duration{time.Second, time.Hour} {
		snap.Replicas[i].Claims[0].CreationTimestamp = metav1.NewTime(snap.Now.Add(-age))
	}
	if places := desired.Of(snap).Places; len(places) != 1 || places[0].ID != "b" {
		t.Errorf("places = %v, want b", places)
	}
}

// TestClaimsComeBackWhereTheyAreMounted lacks a pod of each revision. Only the update revision mounts the claims that an identity
// without a pod has.
func TestClaimsComeBackWhereTheyAreMounted(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("random R=3 p=2 claims claimless v1>v2", "a:- b:v1+")
	s := desired.Of(snap)
	if places := s.Places; len(places) != 2 || places[0].Revision != "v1" || places[1].Revision != "v2" || places[1].ID != "a" {
		t.Errorf("places = %v, want another at v1, then a at v2", places)
	}
	if back, same := s.ComesBackAt(snap, &snap.Replicas[0]); back != "v2" || !same {
		t.Errorf("ComesBackAt = %q, %t; want v2, true", back, same)
	}
}

// TestDyingClaimsDoNotComeBack lacks one pod, and has the claims of two. The first ones are deleted with their pod.
func TestDyingClaimsDoNotComeBack(t *testing.T) {
	t.Parallel()
	for name, condemn := range map[string]func(*corev1.PersistentVolumeClaim, metav1.Time){
		"owned by the pod": func(claim *corev1.PersistentVolumeClaim, _ metav1.Time) {
			claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "web-a", UID: "gone", Controller: new(true)}}
		},
		"being deleted": func(claim *corev1.PersistentVolumeClaim, now metav1.Time) { claim.DeletionTimestamp = &now },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse("random R=2 v1 claims", "a:- b:- c:v1+$")
			condemn(snap.Replicas[0].Claims[0], metav1.NewTime(snap.Now))
			if places := desired.Of(snap).Places; len(places) != 1 || places[0].ID != "b" {
				t.Errorf("places = %v, want b", places)
			}
		})
	}
}

// TestGuardLimitCountsPlaces has two surge pods beside a pod that has ended and holds its place.
func TestGuardLimitCountsPlaces(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("random R=3 mu=0 surge=3 v1>v2", "a:v1+ b:v1! c:v1+ x:v2, y:v2,")
	if got := desired.Of(snap).GuardLimit(snap, snap.Active(), 0, 0); got != 2 {
		t.Errorf("the guard allows %d unavailable pods, want 2", got)
	}
}

// TestEmptiedPlace lacks a pod beside one whose successor comes at the update revision. The lost one comes there too if a move has taken it.
func TestEmptiedPlace(t *testing.T) {
	t.Parallel()
	for revision, want := range map[string]string{"v1": "+new:v1, a>v2, 1 too many at v1", "v2": "+new:v2, a>v2, 1 too many at v1"} {
		snap := snapshottest.Parse("random R=4 mu=1 claims v1>v2", "a:v1+$ b:v2+$ c:v2x$ d:-")
		snap.Replacing = map[string]string{"d": revision}
		if got := line(desired.Of(snap)); got != want {
			t.Errorf("taken for %s: got %s, want %s", revision, got, want)
		}
	}
}

// TestSendBack sends pods back in the order of their identities.
func TestSendBack(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordinal R=3 v1>v2", "0:v2, 1:v1+ 2:v2,")
	s := desired.Of(snap)
	s.SendBack(snap, []*snapshot.Replica{&snap.Replicas[2], &snap.Replicas[0]})
	if got, want := line(s), "0>v1, 1>v2, 2>v1, 1 too many at v1, 2 too many at v2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestStandIns counts pods that may stand in for members, and none that a user named. None does once the guard yields.
func TestStandIns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config, state string
		// none is for how long no pod has been ready; zero if one is.
		none time.Duration
		// altered are how many of the pods do not get the label of their revision.
		altered, want int
	}{
		{"random R=3 mu=1 surge=1 v1>v2", "a:v2. b:v2. c:v1+ d:v1+", 0, 0, 1},
		{"random R=3 mu=1 surge=1 v1>v2", "a:v2.@ b:v2. c:v1+ d:v1+", 0, 0, 0},
		{"random R=3 p=1 mu=1 surge=1 v1>v2", "a:v1+ b:v2. c:v2. d:v1+", 0, 0, 1},
		{"random R=3 p=1 mu=1 surge=1 v1>v2", "a:v2r b:v2. c:v2. d:v1+", 0, 0, 0},
		{"random R=3 mu=1 surge=1 v1>v3", "a:v2, b:v2, c:v2,", time.Second, 0, 1},
		{"random R=3 mu=1 surge=1 v1>v3", "a:v2, b:v2, c:v2,", time.Second, 1, 1},
		{"random R=3 mu=1 surge=1 v1>v3", "a:v2, b:v2, c:v2,", time.Second, 2, 0},
		{"random R=3 mu=1 surge=1 v1>v3", "a:v2, b:v2, c:v2,", time.Hour, 0, 0},
	} {
		snap := snapshottest.Parse(tt.config, tt.state)
		if tt.none > 0 {
			snap.NoneSince = snap.Now.Add(-tt.none)
		}
		snap.Refusals = map[attempt.Key]snapshot.Refusal{}
		for _, r := range snap.Replicas[:tt.altered] {
			snap.Refusals[attempt.OfPod(attempt.Relabeling, r.Pod)] = snapshot.Refusal{Altered: true}
		}
		if got := desired.StandIns(snap); got != tt.want {
			t.Errorf("%s for %s: %d stand in, want %d", tt.state, tt.none, got, tt.want)
		}
	}
}

// TestNamedBeyondTheirRevision replaces pods that a user named at their revision. Those that it does not need move afterwards.
func TestNamedBeyondTheirRevision(t *testing.T) {
	t.Parallel()
	for state, want := range map[string][]bool{"a:v1+@ b:v1+@ c:v1+@": {false, false, true}, "a:v2+@ b:v2+@ c:v1+": {false, true}} {
		var later []bool
		for _, m := range desired.Of(snapshottest.Parse("random R=3 p=2 v1>v2", state)).Candidates {
			later = append(later, m.Later)
		}
		if !slices.Equal(later, want) {
			t.Errorf("%s: later = %v, want %v", state, later, want)
		}
	}
}

// TestUnprovenPodMovesOnce makes surge for one pod that must move, although that may run other images too.
func TestUnprovenPodMovesOnce(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("random R=4 p=3 mu=0 surge=2 claims v1>v2", "a:v1+$ b:v1+$ c:v1+$ d:v1+$")
	r := &snap.Replicas[3]
	r.Available, r.Updating, r.Restarting, r.Unproven = false, true, true, "no proof"
	if got := desired.Of(snap).Surge; got != 1 {
		t.Errorf("%d surge pods are wanted, want 1", got)
	}
}

// TestStrayGoesFirst has a stray and a pod of the update revision that stand in, and one of them is not needed.
func TestStrayGoesFirst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ config, state, want string }{
		{"random R=1 mu=1 surge=1 v1>v3", "a:v2, b:v3, c:v1+", "a"},
		{"random R=1 mu=1 surge=1 v1>v3", "a:v3, b:v2, c:v1+", "b"},
		{"random R=3 p=2 mu=3 surge=1 v1>v3", "a:v2, b:v2, c:v2, d:v3, e:v3, f:v1+", "c"},
	} {
		if going := desired.Of(snapshottest.Parse(tt.config, tt.state)).Going; len(going) == 0 || going[0].ID != tt.want {
			t.Errorf("%s: %v go, want %s first", tt.state, going, tt.want)
		}
	}
}

// TestSurgeForMembersOnly makes surge for as many pods as the set has places for, and not for surplus pods.
func TestSurgeForMembersOnly(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("random R=2 p=1 mu=0 surge=2 claims v1>v2", "a:v1+$ b:v1+$ c:v1+$ d:v1+$")
	if got := desired.Of(snap).Surge; got != 1 {
		t.Errorf("%d surge pods are wanted, want 1", got)
	}
}

// TestSurgeForUnprovenPods makes surge for a pod of the update revision that serves and may run other images.
func TestSurgeForUnprovenPods(t *testing.T) {
	t.Parallel()
	for unproven, want := range map[string]string{"": "a>v2, b>v2, 2 too many at v1", "no proof": "+new:v2*, a>v2, b>v2, 2 too many at v1"} {
		snap := snapshottest.Parse("random R=3 mu=0 surge=1 claims v1>v2", "a:v1+$ b:v1+$ c:v2+$")
		r := &snap.Replicas[2]
		r.Available, r.Updating, r.Restarting, r.Unproven = false, true, true, unproven
		if got := line(desired.Of(snap)); got != want {
			t.Errorf("%q: got %s, want %s", unproven, got, want)
		}
	}
}

// TestYieldsBesideSurplus breaks all members of a set. A surplus pod gets no time of its own.
func TestYieldsBesideSurplus(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordinal R=2 v1>v2", "0:v1, 1:v2, 5:v1.")
	if got := desired.Of(snap).YieldsAt.Sub(snap.Now); got != -59*time.Minute {
		t.Errorf("the guard yields in %s, want -59m", got)
	}
}

// TestHighestComesFirst lacks members of an OrderedReady set that were at the update revision when the manager started. As many come
// there again, the highest first.
func TestHighestComesFirst(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordered R=4 mu=2 v1>v2", "3:v1+")
	snap.Unseen = 2
	if got, want := line(desired.Of(snap)), "+0:v1, +1:v2, +2:v2, 3>v2, 1 too many at v1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestUnseenClaimsHoldTheirPlace has a pod that terminates and mounts a claim that the cache does not show. Its successor waits for it.
func TestUnseenClaimsHoldTheirPlace(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{"random R=2 claims v1": "", "random R=2 v1": "+new:v1"} {
		snap := snapshottest.Parse(config, "a:v1x b:v1+")
		source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-a"}
		snap.Replicas[0].Pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}}}
		if got := line(desired.Of(snap)); got != want {
			t.Errorf("%s: got %s, want %s", config, got, want)
		}
	}
}

// TestNoYieldBesideALostNode breaks all pods of a set. While the node of one does not answer, that may serve.
func TestNoYieldBesideALostNode(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("random R=3 v1>v2", "a:v1, b:v1, c:v2,")
	snap.Replicas[0].Unreachable = true
	if got := desired.Of(snap).YieldsAt; !got.IsZero() {
		t.Errorf("the guard yields at %s", got)
	}
}
