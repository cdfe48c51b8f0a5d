// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rollset.dev/rollset/internal/testing/testbed/audit"
)

// TestHalfALine reads a log while the API server writes a line of it.
func TestHalfALine(t *testing.T) {
	t.Parallel()
	const line = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"create","user":{"username":"me"},"objectRef":{"resource":"pods"}}` + "\n"
	tests := map[string]struct {
		before, after string
		want          int
	}{
		"the last line":                     {after: line + line[:40], want: 1},
		"the last line before the start":    {before: line + line[:40], after: line[40:] + line, want: 1},
		"nothing that is whole":             {before: line, after: line[:40], want: 0},
		"whole lines":                       {before: line, after: line + line, want: 2},
		"half a line of a killed server":    {after: line[:80] + line + line, want: 2},
		"half a line before another user's": {after: line[:130] + strings.ReplaceAll(line, `"me"`, `"you"`), want: 0},
		"the only line, from its beginning": {after: line[:90], want: 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
				t.Fatal(err)
			}
			log, err := audit.From(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tt.before+tt.after), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := log.Requests("me")
			if err != nil || len(got) != tt.want {
				t.Errorf("got %v and %v, want %d requests", got, err, tt.want)
			}
		})
	}
}
