// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
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

// TestEndedPodHoldsItsPlace has surge that does not become ready, beside a pod that has ended and is not deleted yet. The surge is not too
// much: it does not come back at the current revision.
func TestEndedPodHoldsItsPlace(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("random R=3 mu=0 surge=3 v1>v2", "a:v1+ b:v1! c:v1+ x:v2, y:v2,")
	p := update.Plan(snap, desired.Of(snap), action.Plan{})
	if diff := cmp.Diff("hold web-c and 1 more: 2 unavailable at revision v2, no more are moved to it\n", p.String()); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestGuardCountsTheLowestInOrder has the claims of a lost pod below one that is on its way to the update revision.
func TestGuardCountsTheLowestInOrder(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordered R=4 mu=1 claims v1>v2", "0:- 1:v2x$ 2:v1,$ 3:v2+$")
	p := update.Plan(snap, desired.Of(snap), action.Plan{})
	if diff := cmp.Diff("hold web-2: 1 unavailable at revision v2, no more are moved to it\n", p.String()); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestGuardCountsPlaces lacks a pod that the API server refuses. The place holds pods that serve, and no broken ones.
func TestGuardCountsPlaces(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"a:v1+ b:v1+ c:v2+": "hold web-b and 1 more: 1 unavailable at revision v2, no more are moved to it",
		"a:v1+ b:v1, c:v2+": "delete web-b (recreate at v2)\nhold web-a: 2 unavailable at revision v2, no more are moved to it",
	} {
		snap := snapshottest.Parse("random R=4 mu=1 refused v1>v2", state)
		w := desired.Of(snap)
		p := update.Plan(snap, w, scaled(snap, w))
		if diff := cmp.Diff(want+"\n", p.String()); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", state, diff)
		}
	}
}

// TestNoWaitForSurgeThatGoes moves a pod although surge starts whose ordinal is out of range, and no other can come.
func TestNoWaitForSurgeThatGoes(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"0:v1+ 1:v1+ 5:v2.*": "delete web-1 (recreate at v2)\nhold web-0: 1 unavailable at revision v2, no more are moved to it",
		"0:v1+ 1:v1+ 2:v2.*": "hold web-1 and 1 more: surge comes first",
	} {
		snap := snapshottest.Parse("ordinal R=2 mu=1 surge=1 refused v1>v2", state)
		w := desired.Of(snap)
		p := update.Plan(snap, w, scaled(snap, w))
		if diff := cmp.Diff(want+"\n", p.String()); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", state, diff)
		}
	}
}

// TestNoneGoesBackBesideOneThatIsReady has more broken pods at the update revision than may be. They stay while another one there is ready.
func TestNoneGoesBackBesideOneThatIsReady(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"0:v1+ 1:v2, 2:v2, 3:v2,": "delete web-2 (recreate at v1)\nhold web-1 and 1 more: 1 unavailable at revision v1, no more are moved to it",
		"0:v1+ 1:v2, 2:v2, 3:v2r": "hold web-0: 3 unavailable at revision v2, no more are moved to it",
	} {
		snap := snapshottest.Parse("ordinal R=4 mu=1 v1>v2", state)
		p := update.Plan(snap, desired.Of(snap), action.Plan{})
		if diff := cmp.Diff(want+"\n", p.String()); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", state, diff)
		}
	}
}
