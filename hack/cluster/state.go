// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rollset.dev/rollset/internal/testing/testbed/assets"
)

const (
	// stopTimeout is how long a supervisor may take to stop before it is killed. What it started dies with it.
	stopTimeout = 30 * time.Second
	pollEvery   = 50 * time.Millisecond
)

// state is the folder in which a running cluster is found again.
//
// The supervisor holds a lock on a file in it for as long as it lives. The lock, not the process ID, shows whether a cluster
// is up. A lock cannot be left behind. A process ID can, and may then belong to any other process.
type state struct{ dir string }

// These are the names of the two clusters that a clone can have, each with its own folder.
const (
	simulatedCluster = "cluster"
	realCluster      = "node"
)

// openState opens the folder of the cluster of that name.
func openState(name string) (state, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return state{}, fmt.Errorf("find state folder: %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	root, err := assets.ModuleRoot()
	if err != nil {
		return state{}, fmt.Errorf("find this clone: %w", err)
	}
	// Each clone has its own clusters.
	clone := sha256.Sum256([]byte(root))
	s := state{dir: filepath.Join(base, "rollset", fmt.Sprintf("%s-%x", name, clone[:6]))}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return state{}, fmt.Errorf("make state folder: %w", err)
	}
	return s, nil
}

func (s state) data() string       { return filepath.Join(s.dir, "data") }
func (s state) kubeconfig() string { return filepath.Join(s.data(), "admin.kubeconfig") }
func (s state) log() string        { return filepath.Join(s.dir, "supervisor.log") }
func (s state) pidFile() string    { return filepath.Join(s.dir, "pid") }
func (s state) lockFile() string   { return filepath.Join(s.dir, "lock") }

// readyFile exists once the cluster is up. It holds the path of the binaries.
func (s state) readyFile() string { return filepath.Join(s.dir, "ready") }

func (s state) isReady() bool { return s.binDir() != "" }

func (s state) binDir() string {
	text, _ := os.ReadFile(s.readyFile())
	return strings.TrimSpace(string(text))
}

// acquire makes this process the supervisor, until it exits or the returned function is called.
func (s state) acquire() (release func(), err error) {
	file, err := os.OpenFile(s.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", s.lockFile(), err)
	}
	if err := s.clear(); err != nil {
		_ = file.Close()
		return nil, err
	}
	if err := os.WriteFile(s.pidFile(), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write process ID: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

// running returns the supervisor's process ID, if there is a supervisor.
func (s state) running() (pid int, ok bool) {
	file, err := os.Open(s.lockFile())
	if err != nil {
		return 0, false
	}
	defer func() { _ = file.Close() }()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		return 0, false
	}
	text, err := os.ReadFile(s.pidFile())
	if err != nil {
		return 0, true
	}
	pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, true
}

// stop asks the supervisor to stop the cluster, and waits until it has.
func (s state) stop(pid int) error {
	if pid <= 0 {
		return fmt.Errorf("%s names no process", s.pidFile())
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); time.Sleep(pollEvery) {
		if _, ok := s.running(); !ok {
			return nil
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	return nil
}

// clear removes what a cluster that is no longer up has left behind.
func (s state) clear() error {
	err := errors.Join(os.RemoveAll(s.data()), os.RemoveAll(s.readyFile()), os.RemoveAll(s.pidFile()))
	if err != nil {
		return fmt.Errorf("clear state folder: %w", err)
	}
	return nil
}
