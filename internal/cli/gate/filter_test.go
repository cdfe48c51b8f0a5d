// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import "testing"

func TestFilters(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{
		`errors:ratio < 0.01`: true,
		`errors:ratio<0.01`:   true,
		`sum by (app) (rate(errors{code!="200"}[5m])) / sum by (app) (rate(requests[5m])) <= 0.01`: true,
		`(errors < 1)`:                             true,
		` ( (errors) < (1) ) `:                     true,
		`errors < 1 and on (app) requests`:         true,
		`errors < 1 unless ON (app) down`:          true,
		`errors < 1 or requests == 0`:              true,
		`errors < on (app) group_left () limit`:    true,
		"errors < 1 # or bool":                     true,
		`{"http.errors", path="a) or (b"} != 3`:    true,
		`up`:                                       false,
		`vector(1)`:                                false,
		``:                                         false,
		`errors < bool 0.01`:                       false,
		`errors <BOOL 0.01`:                        false,
		`(errors < bool 0.01)`:                     false,
		`errors{code!="200"}`:                      false,
		`sum(errors < 1)`:                          false,
		`(errors < 1) * (up > 0)`:                  false,
		`requests and errors < 1`:                  false,
		`errors < 1 or vector(0)`:                  false,
		`label_replace(errors, "a", "<", "b", "")`: false,
		`"it's < 1"`:                               false,
		`or:errors`:                                false,
		`errors[5m`:                                false,
		`errors < "`:                               false,
		`)) < (`:                                   false,
	} {
		if got := filters(query); got != want {
			t.Errorf("filters(%s) = %t", query, got)
		}
	}
}

func FuzzFilters(f *testing.F) {
	f.Add("(a < 1) or b{c='\\'")
	f.Fuzz(func(_ *testing.T, query string) { filters(query) })
}
