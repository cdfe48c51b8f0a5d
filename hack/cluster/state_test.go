// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func newState(t *testing.T) state {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	st, err := openState(simulatedCluster)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestNothingRunsAtFirst(t *testing.T) {
	if pid, ok := newState(t).running(); ok {
		t.Errorf("process %d is said to run", pid)
	}
}

func TestLockTellsWhoRuns(t *testing.T) {
	st := newState(t)
	release, err := st.acquire()
	if err != nil {
		t.Fatal(err)
	}
	if pid, ok := st.running(); !ok || pid != os.Getpid() {
		t.Errorf("running() = %d, %v, want this process", pid, ok)
	}
	if _, err := st.acquire(); err == nil {
		t.Error("a second supervisor got the lock")
	}
	release()
	if pid, ok := st.running(); ok {
		t.Errorf("process %d is said to run after it let go", pid)
	}
}

// A process ID that was left behind does not name the supervisor, even if a process has it.
func TestStaleProcessID(t *testing.T) {
	st := newState(t)
	release, err := st.acquire()
	if err != nil {
		t.Fatal(err)
	}
	release()
	if err := os.WriteFile(st.pidFile(), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(st.readyFile(), []byte("/somewhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := down(st); err != nil {
		t.Error(err)
	}
	if st.isReady() {
		t.Error("the state of a cluster that is gone is left")
	}
}

// Two clones have two clusters. One must not stop the other's.
func TestStateOfEachClone(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	folders := map[string]bool{}
	for range 2 {
		clone := t.TempDir()
		if err := os.WriteFile(filepath.Join(clone, "go.mod"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Chdir(clone)
		for range 2 {
			st, err := openState(simulatedCluster)
			if err != nil {
				t.Fatal(err)
			}
			folders[st.dir] = true
		}
	}
	if len(folders) != 2 {
		t.Errorf("two clones have %d folders of state", len(folders))
	}
}
