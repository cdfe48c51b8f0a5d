// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollset.dev/rollset/internal/model/identity"
)

func TestSetsNamed(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"data-web-0":       {"web"},
		"data-my-web-0":    {"my-web", "web"},
		"data.1-web-ab12x": {"web"},
		"web-0":            nil,
		"web":              nil,
		"":                 nil,
		"--":               {""},
	}
	for name, want := range tests {
		if diff := cmp.Diff(want, identity.SetsNamed(name)); diff != "" {
			t.Errorf("sets of %q (-want +got):\n%s", name, diff)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for claim, want := range map[string]map[string]bool{
		"data-web-0":    {"web": true, "data": false, "eb": false, "": false},
		"data-my-web-0": {"web": true, "my-web": true, "my": false},
		"data--0":       {"": false},
		"web-0":         {"web": false},
		"web":           {"web": false, "": false},
	} {
		for set, want := range want {
			if identity.Names(claim, set) != want {
				t.Errorf("claim %q belongs to set %q: %t", claim, set, !want)
			}
		}
	}
}

func TestClaimID(t *testing.T) {
	t.Parallel()
	templates := []string{"data", "data-web"}
	tests := map[string]struct {
		id string
		ok bool
	}{
		"data-web-0":     {"0", true},
		"data-web-web-0": {"0", true}, // of the second template; of the first it would be "web-0"
		"data-db-0":      {"", false},
		"logs-web-0":     {"", false},
		"logs":           {"", false},
	}
	for name, want := range tests {
		if id, ok := identity.ClaimID("web", templates, name); id != want.id || ok != want.ok {
			t.Errorf("ClaimID(%q) = %q, %v, want %q, %v", name, id, ok, want.id, want.ok)
		}
	}
}
