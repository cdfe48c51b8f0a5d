// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
)

func TestRunRefusesWhatItDoesNotUnderstand(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"an unknown flag":       {args: []string{"--no-such-flag"}, want: "no-such-flag"},
		"an argument":           {args: []string{"start"}, want: `unexpected argument "start"`},
		"no workers":            {args: []string{"--max-concurrent-reconciles=0"}, want: "--max-concurrent-reconciles: 0 is less than 1"},
		"a number that is none": {args: []string{"--max-concurrent-reconciles=many"}, want: `invalid value "many" for flag -max-concurrent-reconciles`},
		"a level that is none":  {args: []string{"--zap-log-level=loud"}, want: `invalid value "loud" for flag -zap-log-level`},
		"a namespace's name":    {args: []string{"--namespaces=a,B"}, want: `"B" is no name of a namespace`},
		"the lease's namespace": {args: []string{"--leader-election-namespace=a b"}, want: `--leader-election-namespace: "a b" is no name of a namespace`},
		"several namespaces outside a pod": {
			args: []string{"--leader-elect", "--namespaces=a,b"}, want: "use --leader-election-namespace",
		},
		"no port":                 {args: []string{"--metrics-bind-address=localhost"}, want: "--metrics-bind-address:"},
		"profiles for everybody":  {args: []string{"--pprof-bind-address=:6060"}, want: "--pprof-bind-address: :6060 is not on loopback"},
		"no certificate":          {args: []string{"--metrics-cert-path=testdata"}, want: "load certificate testdata/tls.crt"},
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
	if err := run(t.Context(), []string{"--version"}, &out); err != nil || !strings.Contains(out.String(), "commit") {
		t.Errorf("run(--version) = %v, printed %q", err, out.String())
	}
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "4a2f8eb"}, {Key: "vcs.modified", Value: "true"}, {Key: "vcs.time", Value: "2026-11-21T10:00:00Z"},
	}}
	if got, want := describe(info), "v1.2.3 (commit 4a2f8eb with changes, of 2026-11-21T10:00:00Z, go1.26.0, "; !strings.HasPrefix(got, want) {
		t.Errorf("describe = %q, want %q", got, want)
	}
}

func TestNamespaces(t *testing.T) {
	for list, want := range map[string][]string{
		"": nil, " , ": nil, "a": {"a"}, "b, a,b,": {"b", "a"},
	} {
		o, err := parse([]string{"--namespaces=" + list}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, o.namespaces); diff != "" {
			t.Errorf("--namespaces=%q (-want +got):\n%s", list, diff)
		}
		restricted := configs(o.namespaces)
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(restricted))); diff != "" || (restricted == nil) != (want == nil) {
			t.Errorf("--namespaces=%q restricts the cache to %v:\n%s", list, restricted, diff)
		}
	}
}

func TestLeaseNamespace(t *testing.T) {
	for args, want := range map[string]string{
		"":                                   "",
		"--leader-elect":                     "kube-system",
		"--leader-elect --namespaces=team-a": "team-a",
		"--leader-elect --namespaces=team-a --leader-election-namespace=x":          "x",
		"--leader-elect --leader-election-namespace=x":                              "x",
		"--leader-elect --namespaces=team-a,team-b --leader-election-namespace=own": "own",
	} {
		o, err := parse(strings.Fields(args), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := o.leaseNamespace(); err != nil || got != want {
			t.Errorf("leaseNamespace of %q = %q, %v, want %q", args, got, err, want)
		}
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-leader-elect") {
		t.Errorf("run(--help) = %v, printed %q", err, out.String())
	}
}

// TestFlagsAreDocumented compares the table of flags in the documentation with the existing flags.
func TestFlagsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)` \\| (?:`([^`]*)`)? ?\\|").FindAllStringSubmatch(string(page), -1) {
		documented[row[1]] = row[2]
	}
	defaults := map[string]string{}
	new(options).flags().VisitAll(func(f *flag.Flag) { defaults[f.Name] = f.DefValue })
	if diff := cmp.Diff(defaults, documented); diff != "" {
		t.Errorf("docs/install.md (-flags +documented):\n%s", diff)
	}
}

func TestReadiness(t *testing.T) {
	synced := false
	check := cachesSynced(&informertest.FakeInformers{Synced: &synced})
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)
	if err := check(request); err == nil {
		t.Error("ready with an empty cache")
	}
	synced = true
	if err := check(request); err != nil {
		t.Errorf("not ready with a cache that is filled: %v", err)
	}
}
