// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rollset.dev/rollset/internal/model/identity"
)

func TestParseOrdinal(t *testing.T) {
	t.Parallel()
	type result struct {
		Ordinal int
		OK      bool
	}
	tests := map[string]struct {
		pod  string
		want result
	}{
		"the first":                       {pod: "web-0", want: result{0, true}},
		"several digits":                  {pod: "web-1203", want: result{1203, true}},
		"the highest":                     {pod: "web-2147483647", want: result{2147483647, true}},
		"one above the highest":           {pod: "web-2147483648"},
		"far above any integer":           {pod: "web-99999999999999999999999"},
		"leading zeros":                   {pod: "web-007"},
		"zero twice":                      {pod: "web-00"},
		"negative":                        {pod: "web--1"},
		"a plus sign":                     {pod: "web-+1"},
		"an underscore":                   {pod: "web-1_0"},
		"hexadecimal":                     {pod: "web-0x1"},
		"digits of another script":        {pod: "web-٣"},
		"white space":                     {pod: "web- 1"},
		"nothing behind the dash":         {pod: "web-"},
		"no dash":                         {pod: "web1"},
		"the set's name only":             {pod: "web"},
		"another set":                     {pod: "db-1"},
		"a set whose name starts alike":   {pod: "web-a-1"},
		"a random id":                     {pod: "web-x7k2p"},
		"an id that looks like an number": {pod: "web-22222", want: result{22222, true}},
		"empty":                           {pod: ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got result
			got.Ordinal, got.OK = identity.ParseOrdinal("web", tc.pod)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ParseOrdinal(%q) (-want +got):\n%s", tc.pod, diff)
			}
		})
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pod    string
		wantID string
	}{
		"an id":                       {pod: "web-x7k2p", wantID: "x7k2p"},
		"digits only":                 {pod: "web-22222", wantID: "22222"},
		"too short":                   {pod: "web-x7k2"},
		"too long":                    {pod: "web-x7k2pp"},
		"a vowel":                     {pod: "web-xak2p"},
		"a digit not in the alphabet": {pod: "web-x0k2p"},
		"upper case":                  {pod: "web-X7K2P"},
		"several bytes per character": {pod: "web-x7ké"},
		"another set":                 {pod: "db-x7k2p"},
		"an id behind another name":   {pod: "web-a-x7k2p"},
		"no dash":                     {pod: "webx7k2p"},
		"empty":                       {pod: ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := identity.ParseID("web", tc.pod)
			if got != tc.wantID || ok != (tc.wantID != "") {
				t.Errorf("ParseID(%q) = %q, %v; want %q", tc.pod, got, ok, tc.wantID)
			}
		})
	}
}
