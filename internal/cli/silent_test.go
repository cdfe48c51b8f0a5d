// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"rollset.dev/rollset/internal/cli/session"
)

// silence accepts connections, reads what it is sent, and never answers.
func silence(t *testing.T) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, connection := range open {
			_ = connection.Close()
		}
	})
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, connection)
			mu.Unlock()
			go func() { _, _ = io.Copy(io.Discard, connection) }()
		}
	}()
	return "http://" + listener.Addr().String()
}

// argumentsOf returns arguments with which each command asks the API server. Those of groups, which only print help, are nil.
func argumentsOf() map[string][]string {
	return map[string][]string{
		"get": {"web"}, "status": {"web"}, "history": {"web"}, "diff": {"web"}, "logs": {"web"}, "why": {"web"}, "version": {},
		"undo": {"web"}, "restart": {"web"}, "pause": {"web"}, "resume": {"web"}, "promote": {"web"}, "abort": {"web"}, "retry": {"web"},
		"set": nil, "set image": {"web", "app=web:2"}, "set partition": {"web", "1"}, "delete-pod": {"web-0"},
		"gate": {"web", "Smoke", "--", "true"}, "plan": {"web"},
		"adopt": {"statefulset/web"}, "release": {"web"}, "migrate-storage": {},
	}
}

// asksNobody are the commands that need no cluster.
func asksNobody() []string { return []string{"convert", "completion", "help"} }

// verbs returns all commands of the tree, by the words that select them.
func verbs(root *cobra.Command) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	var walk func(prefix string, parent *cobra.Command)
	walk = func(prefix string, parent *cobra.Command) {
		for _, cmd := range parent.Commands() {
			name := strings.TrimSpace(prefix + " " + cmd.Name())
			all[name] = cmd
			walk(name, cmd)
		}
	}
	walk("", root)
	return all
}

// TestSilentServer runs every command of the tree against a server that accepts connections and never answers: with the
// command's own limit if it has one, and with that of each request.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	address := silence(t)
	arguments := argumentsOf()
	for name, cmd := range verbs(New(session.New(genericiooptions.NewTestIOStreamsDiscard(), clock.RealClock{}))) {
		args, known := arguments[name]
		if strings.HasPrefix(cmd.Name(), "__") || slices.Contains(asksNobody(), name) {
			continue
		}
		if !known {
			t.Errorf("the test knows no arguments of %s", name)
		}
		if args == nil {
			continue
		}
		for limit, code := range map[string]int{"--timeout=200ms": session.ExitTimeout, "--request-timeout=200ms": session.ExitFailed} {
			if limit == "--timeout=200ms" && (cmd.Flags().Lookup("timeout") == nil || name == "adopt" || name == "release") {
				continue // theirs is the limit of one step
			}
			t.Run(name+" "+limit, func(t *testing.T) {
				t.Parallel()
				silent(t, address, append(append(strings.Fields(name), limit), args...), code)
			})
		}
	}
}

// silent runs a command line against a silent server. It must end with a code, and name the cause.
func silent(t *testing.T, address string, args []string, code int) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &stderr}, clock.RealClock{})
	// The test's own limit is shorter than the default of a request, so that a limit that is ignored is noticed.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got := Run(ctx, s, append([]string{"kubectl-rollset", "--server=" + address, "--kubeconfig=" + config}, args...))
	if args[0] == "version" { // it says that the manager's version is unknown, and why
		code = 0
		stderr.Write(out.Bytes())
	}
	if ctx.Err() != nil || got != code || !strings.Contains(stderr.String(), "the API server does not answer") {
		t.Errorf("%s: exit code %d, want %d; its own limit ended it: %t\n%s%s", strings.Join(args, " "), got, code, ctx.Err() == nil, &out, &stderr)
	}
}
