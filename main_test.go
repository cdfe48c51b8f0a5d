// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunRefusesWhatItDoesNotUnderstand(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":         {args: []string{"--no-such-flag"}, want: "no-such-flag"},
		"an argument":             {args: []string{"start"}, want: `unexpected argument "start"`},
		"no workers":              {args: []string{"--max-concurrent-reconciles=0"}, want: "--max-concurrent-reconciles: 0 is less than 1"},
		"a kubeconfig not there":  {args: []string{"--kubeconfig=/no/such/file"}, want: "find the API server"},
		"an API server not there": {args: []string{"--kubeconfig=testdata/nobody.kubeconfig"}, want: "connection refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), tt.args, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("run(%q) = %v, want %q", tt.args, err, tt.want)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--version"}, &out); err != nil || strings.TrimSpace(out.String()) == "" {
		t.Errorf("run(--version) = %v, printed %q", err, out.String())
	}
}

func TestNamespaces(t *testing.T) {
	for list, want := range map[string][]string{
		"": nil, " , ": nil, "a": {"a"}, "b, a,": {"a", "b"},
	} {
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(namespaces(list)))); diff != "" {
			t.Errorf("namespaces(%q) (-want +got):\n%s", list, diff)
		}
	}
	if namespaces("") != nil {
		t.Error("no list restricts the manager to no namespace")
	}
}
