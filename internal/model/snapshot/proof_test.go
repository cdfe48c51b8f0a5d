// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
)

func TestProves(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config, state string
		want          bool
	}{
		"all at the update revision":             {"random R=2 v1>v2", "a:v2+ b:v2+", true},
		"without replicas":                       {"random R=0 v1>v2", "", false},
		"claims without a pod do not matter":     {"ordinal R=1 v1>v2", "0:v2+ 1:-", true},
		"one is not available":                   {"random R=2 v1>v2", "a:v2+ b:v2r", false},
		"one is out of service for an update":    {"random R=2 v1>v2", "a:v2+ b:v2~", false},
		"one is old":                             {"random R=2 v1>v2", "a:v2+ b:v1+", false},
		"one is missing":                         {"random R=2 v1>v2", "a:v2+", false},
		"one is too many":                        {"random R=1 v1>v2", "a:v2+ b:v2+", true},
		"a surplus one is old":                   {"random R=1 v1>v2", "a:v2+ b:v1+", true},
		"a surplus one is not available":         {"random R=1 v1>v2", "a:v2+ b:v2.", true},
		"an old one is terminating":              {"random R=1 v1>v2", "a:v2+ b:v1x", true},
		"an old one hangs in its end":            {"random R=1 v1>v2", "a:v2+ b:v1X", true},
		"an old one has failed":                  {"random R=1 v1>v2", "a:v2+ b:v1!", true},
		"one of the new ones is terminating":     {"random R=1 v1>v2", "a:v2+ b:v2x", true},
		"one that surge made counts for none":    {"random R=2 claims v1>v2", "a:v2+ b:v2+*", false},
		"surge of the old one, beside all":       {"random R=1 claims v1>v2", "a:v2+ b:v1+*", true},
		"the ordinal of one is not in use":       {"ordinal R=2 v1>v2", "0:v2+ 2:v2+", false},
		"an old one whose ordinal is not in use": {"ordinal R=1 v1>v2", "0:v2+ 1:v1+", true},
		"a place whose old pod terminates":       {"ordinal R=2 v1>v2", "0:v2+ 1:v1x", false},
		"the partition keeps one":                {"random R=2 p=1 v1>v2", "a:v2+ b:v1+", false},
		"the partition keeps one, others go":     {"random R=2 p=1 v1>v2", "a:v2+ b:v1+ c:v2+ d:v2+", false},
		"one is too many in a pause":             {"random R=2 paused v1>v2", "a:v2+ b:v1+ c:v2+", false},
		"a rejected revision":                    {"random R=1 rejected v1>v2", "a:v2+", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := snapshottest.Parse(tc.config, tc.state).Proves(); got != tc.want {
				t.Errorf("Proves = %t, want %t", got, tc.want)
			}
		})
	}
	snap := snapshottest.Parse("random R=1 v1>v2", "a:v2+")
	snap.Rollout.Next = &v1beta1.RolloutStatus{Step: 1, Steps: 1}
	if snap.Proves() {
		t.Error("a revision is proven during its last step")
	}
	snap.Update.Name, snap.Rollout.Next = "", nil
	if snap.Proves() {
		t.Error("no revision is proven")
	}
}

// TestServed judges v2 once more, while v1 is current and another template takes effect.
func TestServed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config, state string
		want          bool
		near          bool
	}{
		"all are available":                   {"random R=3", "a:v2+ b:v2+ c:v2+", true, true},
		"maxUnavailable may be missing":       {"random R=3", "a:v2+ b:v2+", true, true},
		"or not ready":                        {"random R=3", "a:v2+ b:v2+ c:v2.", true, true},
		"or not ready for long enough":        {"random R=3", "a:v2+ b:v2+ c:v2r", true, true},
		"no more than that":                   {"random R=3", "a:v2+ b:v2. c:v2.", false, true},
		"with maxUnavailable 0 none":          {"random R=3 mu=0 surge=1", "a:v2+ b:v2+ c:v2.", false, true},
		"one at least must be available":      {"random R=1", "a:v2.", false, true},
		"an old one stays":                    {"random R=3", "a:v2+ b:v2+ c:v1+", false, false},
		"an old one stays, broken as it is":   {"random R=3", "a:v2+ b:v2+ c:v1.", false, false},
		"an old one terminates":               {"random R=3", "a:v2+ b:v2+ c:v1x", true, true},
		"an old one has failed":               {"random R=3", "a:v2+ b:v2+ c:v1!", true, true},
		"an old one is surplus":               {"random R=3", "a:v2+ b:v2+ c:v2. d:v1+", true, true},
		"of two old ones one is surplus":      {"random R=3", "a:v2+ b:v2+ c:v1+ d:v1+", false, false},
		"an old one is surge":                 {"random R=2 claims", "a:v2+ b:v2+ c:v1+*", true, true},
		"an old one has no place any more":    {"ordinal R=2", "0:v2+ 1:v2+ 2:v1+", true, true},
		"an old one has one":                  {"ordinal R=2", "0:v1+ 1:v2+", false, false},
		"without replicas nothing served":     {"random R=0", "a:v2+ b:v2+", false, false},
		"those that have no place do nothing": {"ordinal R=2", "2:v2+ 3:v2+", false, true},
		"a stray does not matter":             {"random R=3", "a:v2+ b:v2+ c:v3+", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served, near := snapshottest.Parse(tc.config+" v1>v9", tc.state).Served("v2", "v1")
			if served != tc.want || near != tc.near {
				t.Errorf("Served = %t, near %t; want %t, %t", served, near, tc.want, tc.near)
			}
		})
	}
	if served, _ := snapshottest.Parse("random R=2 v1>v9", "a:v1+ b:v1+").Served("v1", ""); !served {
		t.Error("the first revision did not serve")
	}
	if served, _ := snapshottest.Parse("random R=2 v1>v9", "a:v1+ b:v1+").Served("v1", "v1"); !served {
		t.Error("the current revision did not serve")
	}
}
