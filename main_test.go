// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
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
		"less than no memory":   {args: []string{"--memory-limit=-1"}, want: "--memory-limit: -1 is less than 0"},
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

var update = flag.Bool("update", false, "rewrite the table of flags in docs/install.md")

// TestFlagsAreDocumented compares the table of flags in the documentation with the flags.
func TestFlagsAreDocumented(t *testing.T) {
	const page, begin, end = "docs/install.md", "<!-- flags: written by make generate -->\n", "<!-- end of flags -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	documented, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no table of flags", page)
	}
	table := "\n| flag | variable | default | meaning |\n|---|---|---|---|\n"
	quoted := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + text + "`"
	}
	new(options).flags().VisitAll(func(f *flag.Flag) {
		of := variable(f.Name)
		if f.Name == versionFlag {
			of = ""
		}
		_, usage := flag.UnquoteUsage(f)
		table += fmt.Sprintf("| `--%s` | %s | %s | %s |\n", f.Name, quoted(of), quoted(f.DefValue), usage)
	})
	table += "\n"
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(table, documented); diff != "" {
		t.Errorf("%s; make generate writes it (-flags +documented):\n%s", page, diff)
	}
}

// TestEveryFlagHasAVariable sets each flag by its variable, as the command line does.
func TestEveryFlagHasAVariable(t *testing.T) {
	values := map[string]string{
		"metrics-bind-address": ":1", "metrics-secure": "false", "metrics-cert-path": "folder", "metrics-cert-name": "cert",
		"metrics-cert-key": "key", "health-probe-bind-address": ":2", "pprof-bind-address": "127.0.0.1:3", "leader-elect": "true",
		"leader-election-namespace": "leases", "namespaces": "a,b", "max-concurrent-reconciles": "7", "memory-limit": "1000",
		"kubeconfig": "file", "zap-devel": "true", "zap-encoder": "console", "zap-log-level": "2", "zap-stacktrace-level": "panic",
		"zap-time-encoding": "nanos",
	}
	new(options).flags().VisitAll(func(f *flag.Flag) {
		value, ok := values[f.Name]
		if f.Name == versionFlag || ok && value == f.DefValue {
			return
		}
		if !ok {
			t.Fatalf("--%s: give it a value in this test", f.Name)
		}
		set := func(by string, read func(*options, *flag.FlagSet) error) string {
			o := &options{}
			flags := o.flags()
			if err := read(o, flags); err != nil {
				t.Errorf("--%s by %s: %v", f.Name, by, err)
			}
			o.fromEnvironment = nil
			return fmt.Sprintf("%s %+v", flags.Lookup(f.Name).Value, shown(*o))
		}
		byArgument := set("an argument", func(_ *options, flags *flag.FlagSet) error { return flags.Parse([]string{"--" + f.Name + "=" + value}) })
		byVariable := set("a variable", func(o *options, flags *flag.FlagSet) error {
			return o.readEnvironment(flags, []string{variable(f.Name) + "=" + value})
		})
		if diff := cmp.Diff(byArgument, byVariable); diff != "" {
			t.Errorf("--%s by a variable (-argument +variable):\n%s", f.Name, diff)
		}
	})
}

// shown has the options that can be printed: zap's are functions.
func shown(o options) options {
	o.logging = zap.Options{Development: o.logging.Development}
	return o
}

func TestEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		variable, value string
		args            []string
		want, wantErr   string
	}{
		"a variable":            {variable: "ROLLSET_LEADER_ELECTION_NAMESPACE", value: "leases", want: "leases"},
		"none":                  {variable: "ROLLSET_LEADER_ELECTION_NAMESPACE", value: ""},
		"an argument beside it": {variable: "ROLLSET_LEADER_ELECTION_NAMESPACE", value: "leases", args: []string{"--leader-election-namespace=x"}, want: "x"},
		"an empty argument":     {variable: "ROLLSET_LEADER_ELECTION_NAMESPACE", value: "leases", args: []string{"--leader-election-namespace="}},
		"a version":             {variable: "ROLLSET_VERSION", value: "0.1.0"},
		"no number": {
			variable: "ROLLSET_MAX_CONCURRENT_RECONCILES", value: "many",
			wantErr: `invalid value "many" of the variable ROLLSET_MAX_CONCURRENT_RECONCILES for --max-concurrent-reconciles`,
		},
		"a bad namespace": {variable: "ROLLSET_NAMESPACES", value: "a,B", wantErr: `variable ROLLSET_NAMESPACES for --namespaces: "B" is no name of a namespace`},
		"no workers":      {variable: "ROLLSET_MAX_CONCURRENT_RECONCILES", value: "0", wantErr: "0 is less than 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			o, err := parse(c.args, io.Discard)
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("%v, want %q", err, c.wantErr)
				}
				return
			}
			if err != nil || o.leaderNamespace != c.want || o.version {
				t.Errorf("%+v, %v, want the namespace %q", shown(o), err, c.want)
			}
		})
	}
	t.Setenv("ROLLSET_LEADER_NAMESPACE", "leases")
	if o, err := parse(nil, io.Discard); err != nil || !slices.Contains(o.ignored, "ROLLSET_LEADER_NAMESPACE") {
		t.Errorf("a variable that no flag has is passed over without a word: %v, %v", o.ignored, err)
	}
}

func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for name, c := range map[string]struct {
		limit  int64
		goes   string
		wanted int64
	}{
		"none":                 {wanted: before},
		"that of a container":  {limit: 1000 << 20, wanted: 900 << 20},
		"Go's own beside that": {limit: 1000 << 20, goes: "100MiB", wanted: before},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(before)
			t.Setenv("GOMEMLIMIT", c.goes)
			(&options{memoryLimit: c.limit}).limitMemory()
			if got := debug.SetMemoryLimit(-1); got != c.wanted {
				t.Errorf("the limit is %d, want %d", got, c.wanted)
			}
		})
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
