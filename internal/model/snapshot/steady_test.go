// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
)

func TestFindSteady(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config, state string
		steady        map[string]int
		others        []string
	}{
		"no pods":                     {"random R=2 v1", "", map[string]int{}, nil},
		"available pods are":          {"random R=2 v1", "a:v1+ b:v1+", map[string]int{"v1": 2}, nil},
		"whatever their revision":     {"random R=3 v1>v2", "a:v2+ b:v1+ c:v2+", map[string]int{"v1": 1, "v2": 2}, nil},
		"with claims too":             {"random R=1 claims v1", "a:v1+$", map[string]int{"v1": 1}, nil},
		"not a revision that is lost": {"random R=2 v1", "a:other+ b:v1+", map[string]int{"v1": 1}, []string{"a"}},
		"not pods on the way":         {"random R=4 v1", "a:v1. b:v1r c:v1~ d:v1+", map[string]int{"v1": 1}, []string{"a", "b", "c"}},
		"not pods that go":            {"random R=4 v1", "a:v1x b:v1! c:v1+@ d:v1+>", map[string]int{}, []string{"a", "b", "c", "d"}},
		"not surge":                   {"random R=1 surge=1 claims v1>v2", "a:v1+$ b:v2+$*", map[string]int{"v1": 1}, []string{"b"}},
		"not claims alone":            {"random R=1 claims v1", "a:v1+$ b:-", map[string]int{"v1": 1}, []string{"b"}},
		"not out of range":            {"ordinal R=1 v1", "0:v1+ 1:v1+", map[string]int{"v1": 1}, []string{"1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse(tt.config, tt.state)
			available, active, placed := snap.Available(), snap.Active(), snap.Placed()
			snap.FindSteady()
			if got := snap.CountSteady(); !maps.Equal(got, tt.steady) {
				t.Errorf("steady: %v, want %v", got, tt.steady)
			}
			if got := ids(snap); !slices.Equal(got, tt.others) {
				t.Errorf("others: %v, want %v", got, tt.others)
			}
			if snap.Available() != available || snap.Active() != active || snap.Placed() != placed {
				t.Errorf("available, active, placed: %d, %d, %d; before %d, %d, %d", snap.Available(), snap.Active(), snap.Placed(), available, active, placed)
			}
		})
	}
}

// TestNotSteady gives a steady pod one thing after another that is to be said or done about it.
func TestNotSteady(t *testing.T) {
	t.Parallel()
	updated := inplace.State{Resized: []string{"app"}}
	tests := map[string]func(r *snapshot.Replica){
		"in place of one of its name":      func(r *snapshot.Replica) { r.Replaced = true },
		"in a state of a hook":             func(r *snapshot.Replica) { r.State = v1beta1.LifecycleUpdated },
		"waits for a hook":                 func(r *snapshot.Replica) { r.Hook = "preUpdate" },
		"went on without a hook":           func(r *snapshot.Replica) { r.Passed.Hook = "preUpdate" },
		"taken out of service by a hook":   func(r *snapshot.Replica) { r.Withdrawn = true },
		"out of service":                   func(r *snapshot.Replica) { r.Updating = true },
		"its gate was never opened":        func(r *snapshot.Replica) { r.Gate = inplace.Gate{Declared: true} },
		"its gate is closed":               func(r *snapshot.Replica) { r.Gate = inplace.Gate{Declared: true, Status: corev1.ConditionFalse} },
		"waits for resources":              func(r *snapshot.Replica) { r.InPlace, r.Progress.Resize = updated, "resize" },
		"proof of its update may not stay": func(r *snapshot.Replica) { r.InPlace, r.Progress.Passing = updated, true },
		"proof of its update is due":       func(r *snapshot.Replica) { r.InPlace, r.ProofWait = updated, time.Second },
		"its update is not proven":         func(r *snapshot.Replica) { r.InPlace, r.Unproven = updated, "no proof" },
		"cannot get its resources":         func(r *snapshot.Replica) { r.InPlace, r.Infeasible = updated, "no room" },
	}
	for name, happen := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshottest.Parse("random R=1 v1", "a:v1+")
			happen(&snap.Replicas[0])
			if snap.FindSteady(); len(ids(snap)) != 1 {
				t.Error("the replica is steady")
			}
		})
	}
}

// TestCountSteadyWithoutAList counts the replicas of a snapshot that another program made.
func TestCountSteadyWithoutAList(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("random R=3 v1>v2", "a:v1+ b:v2+ c:v2+")
	snap.Replicas[0].Steady, snap.Replicas[1].Steady = true, true
	if got, want := snap.CountSteady(), map[string]int{"v1": 1, "v2": 1}; !maps.Equal(got, want) {
		t.Errorf("steady: %v, want %v", got, want)
	}
	if got := ids(snap); !slices.Equal(got, []string{"c"}) {
		t.Errorf("others: %v, want c", got)
	}
}

// ids returns the identities that are not steady.
func ids(snap *snapshot.Set) (all []string) {
	for r := range snap.Unsteady() {
		all = append(all, r.ID)
	}
	return all
}

// TestLacks counts the members that have a pod, available or not.
func TestLacks(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{"a:v1+ b:v1.": false, "a:v1+ b:v1x": true, "a:v1+ b:v1.*": true, "a:v1+": true} {
		snap := snapshottest.Parse("random R=2 claims v1", state)
		snap.FindSteady()
		if got := snap.Lacks(); got != want {
			t.Errorf("%s: lacks a pod: %t", state, got)
		}
	}
}

// TestHasClaims looks for claim templates in the spec, and in the revisions whose pods may come back.
func TestHasClaims(t *testing.T) {
	t.Parallel()
	templates := snapshottest.Parse("random R=1 claims v1", "").Spec.VolumeClaimTemplates
	known := map[string]snapshot.Revision{"v0": {Claims: []snapshot.ClaimTemplate{{Name: "data"}}}}
	for name, tt := range map[string]struct {
		set  snapshot.Set
		want bool
	}{
		"in the spec":   {snapshot.Set{Settings: snapshot.Settings{Spec: &v1beta1.RollSetSpec{VolumeClaimTemplates: templates}}}, true},
		"in a revision": {snapshot.Set{Settings: snapshot.Settings{Spec: &v1beta1.RollSetSpec{}}, Revisions: snapshot.Revisions{Known: known}}, true},
		"nowhere":       {snapshot.Set{Settings: snapshot.Settings{Spec: &v1beta1.RollSetSpec{}}}, false},
	} {
		if got := tt.set.HasClaims(); got != tt.want {
			t.Errorf("%s: has claims: %t", name, got)
		}
	}
}

func TestIDOf(t *testing.T) {
	t.Parallel()
	snap := snapshottest.Parse("ordinal R=1 v1", "")
	for pod, want := range map[string]string{"web-0": "0", "web-x-1": "x-1", "other-0": "other-0"} {
		if got := snap.IDOf(pod); got != want {
			t.Errorf("%s is %q, want %q", pod, got, want)
		}
	}
}
