// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"
)

// TestNamespaced runs the manager of the overlay: it acts in two namespaces and not in a third.
func TestNamespaced(t *testing.T) {
	for _, name := range []string{"team-a", "team-b", "team-c"} {
		ensureNamespace(t, name)
	}
	manifest := kustomize(t, "config/overlays/namespaced")
	kubectl(t, "", "delete", "clusterrolebindings", "--ignore-not-found", "rollset-manager-rolebinding") // of another kind of installation
	apply(t, manifest)
	d := deployment(t, objects(t, manifest))
	own := "--leader-election-namespace=" + d.Namespace // which only a pod knows by itself
	run(t, d, own)
	outside := newSet(t, "team-c", "outside")
	awaitPods(t, newSet(t, "team-a", "inside"), 1)
	awaitPods(t, newSet(t, "team-b", "inside"), 1)
	unseen(t, outside)

	// A manager that may not watch a namespace says so, and exits.
	_, err := tryRun(t, d, own, "--namespaces=team-a,team-c")
	wantRefusal(t, err, "the manager may not watch RollSet in namespace team-c")
	_, err = tryRun(t, d, own, "--namespaces=")
	wantRefusal(t, err, "the manager may not watch RollSet in the whole cluster")
	_, err = tryRun(t, d, "--leader-election-namespace=team-c")
	wantRefusal(t, err, "the manager may not use the lease team-c/manager.rollset.dev")
}

// wantRefusal fails if a manager did not exit with an error and a message.
func wantRefusal(t *testing.T, err error, message string) {
	t.Helper()
	for _, want := range []string{"the manager ended at its start: exit status 1", "error: " + message} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got: %v", want, err)
		}
	}
}
