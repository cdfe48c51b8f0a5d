// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package scale_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/scale"
)

// TestVictimsInARollout scales down during a rollout, when pods that may be surge are taken before others. Pods later in the
// alphabet are younger, and pod d has a high deletion cost.
func TestVictimsInARollout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config, state string
		claims        bool
		want          string
	}{
		"in a pause the dear pod stays": {
			config: "random R=2 paused v1>v2", state: "a:v1+ b:v1+ c:v1+ d:v1+",
			want: "delete web-c (scale down to 2)\ndelete web-b (scale down to 2)",
		},
		"in a pause the broken one of the new pods goes": {
			config: "random R=2 surge=1 paused v1>v2", state: "a:v1+ b:v2. c:v2+",
			want: "delete web-b (scale down to 2)",
		},
		"surge that is no longer needed is deleted": {
			config: "random R=2 p=1 surge=1 v1>v2", state: "a:v1+ b:v2+* c:v2+", claims: true,
			want: "delete web-b (the rollout needs no more surge)",
		},
		"and no other in its place": {
			config: "random R=2 p=1 surge=1 v1>v2", state: "a:v1+ b:v2+* c:v2.", claims: true,
		},
		"it stays while others move": {
			config: "random R=2 surge=1 v1>v2", state: "a:v1+ b:v2+* c:v2.", claims: true,
		},
		"broken at a revision that is not wanted it is of no use": {
			config: "random R=2 surge=1 v1>v2", state: "a:v1+ b:v0.* c:v1+", claims: true,
			want: "delete web-b (the rollout needs no more surge)",
		},
		"that goes first": {
			config: "random R=2 surge=1 v1>v2", state: "a:v1+ b:v0.* c:v1+ d:v2.*", claims: true,
			want: "delete web-b (the rollout needs no more surge)",
		},
		"named by a user it goes when all others are available": {
			config: "random R=2 surge=1 v1>v2", state: "a:v1+ b:v2+@* c:v1+", claims: true,
			want: "delete web-b (the rollout needs no more surge)",
		},
		"and not before": {
			config: "random R=2 surge=1 v1>v2", state: "a:v1+ b:v2+@* c:v1.", claims: true,
			want: "hold web-b: it is to be deleted when enough other pods are available",
		},
		"not yet available it goes all the same when all others are": {
			config: "random R=2 surge=1 v1>v2", state: "a:v1+ b:v2r@* c:v1+", claims: true,
			want: "delete web-b (the rollout needs no more surge)",
		},
		"and stays while one is lacking, because it may be available next": {
			config: "random R=2 surge=1 v1>v2", state: "a:v1+ b:v2r@* c:v1.", claims: true,
			want: "hold web-b: it is to be deleted when enough other pods are available",
		},
		"named by a user it stays as long as it stands in for one that is going": {
			config: "random R=2 surge=1 v1>v2", state: "a:v1+ b:v2+@* c:v1x$", claims: true,
			want: "hold web-b: it is to be deleted when enough other pods are available",
		},
		"where no pod comes before it is gone it goes whatever it is worth": {
			config: "random R=4 recreate v1>v2", state: "a:v2+ b:v1+*", claims: true,
			want: "delete web-b (the rollout needs no more surge)\nhold web-b: updateStrategy Recreate: no new pod before the last at revision v1 is gone",
		},
		"a scale-down takes none of it": {
			config: "random R=1 surge=1 v1>v2", state: "a:v1+ b:v2+* c:v2.", claims: true,
			want: "delete web-a (scale down to 2)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse(c.config, c.state)
			snap.Claimed = snap.Claimed || c.claims
			for i := range snap.Replicas {
				r := &snap.Replicas[i]
				r.Created = int64(1_000 + i)
				if r.ID == "d" {
					r.DeletionCost = 100
				}
			}
			w := desired.Of(snap)
			p := scale.Down(snap, w)
			p.Join(scale.Up(snap, w, p))
			if diff := cmp.Diff(c.want, strings.TrimSuffix(p.String(), "\n")); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRangeMovesInOrder moves the range of ordinals of an OrderedReady set. The pods below it go one after the other, and as many come.
func TestRangeMovesInOrder(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordered R=3 start=2 v1", "0:v1+ 1:v1x 2:v1+")
	w := desired.Of(snap)
	down := scale.Down(snap, w)
	down.Join(scale.Up(snap, w, down))
	if diff := cmp.Diff("create 3 at v1 (missing)\n"+
		"hold web-0: podManagementPolicy OrderedReady: web-1 is still terminating\n"+
		"hold web-0: its ordinal is out of range; it must be deleted before another pod is created", strings.TrimSpace(down.String())); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestHighestGoesFirst has one pod too many below the range of an OrderedReady set. The highest goes, although another is not in service;
// pods that are only misplaced go the other way.
func TestHighestGoesFirst(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"0:v1+ 1:v1+ 2:v1+": "delete web-1 (its ordinal is not in use)", "0:v1+ 1:v1+": "delete web-0 (its ordinal is not in use)"} {
		snap := snapshottest.Parse("ordered R=2 start=2 v1", state)
		snap.Replicas[0].Available, snap.Replicas[0].Updating = false, true
		p := scale.Down(snap, desired.Of(snap))
		if diff := cmp.Diff(want, strings.TrimSpace(p.String())); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", state, diff)
		}
	}
}

// TestOrdinalsThatGo deletes pods whose ordinals are not in use.
func TestOrdinalsThatGo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ config, state, want string }{
		"surge that terminates does not count": {
			"ordinal R=2 mu=0 surge=1 v1", "0:v1+ 1:v1. 5:v1+ 2:v1x*", "delete web-5 (its ordinal is not in use)",
		},
		"OrderedReady waits for the pods below, although their claims are there": {
			"ordered R=2 claims v1", "0:v1+$ 1:- 5:v1+$", "hold web-5: podManagementPolicy OrderedReady: web-1 does not exist",
		},
		"under Recreate an old pod goes before the highest one": {
			"ordered R=2 start=3 recreate v1>v2", "0:v1+ 1:v2+", "delete web-0 (its ordinal is not in use)",
		},
	} {
		snap := snapshottest.Parse(tt.config, tt.state)
		p := scale.Down(snap, desired.Of(snap))
		if diff := cmp.Diff(tt.want, strings.TrimSpace(p.String())); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", name, diff)
		}
	}
}
