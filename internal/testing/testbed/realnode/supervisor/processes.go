// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rollset.dev/rollset/internal/testing/patience"
	"rollset.dev/rollset/internal/testing/testbed/realnode/setup"
)

// processes holds the children of the node's first process. It is also the parent of all processes whose own parents have ended,
// as containerd's shims are, so it waits for any, and not for each.
type processes struct {
	node setup.Node
	mu   sync.Mutex
	// running are the processes that were started here, by name.
	running map[string]*process
}

// process is one of them. Both fields are set once; ended is closed after status was set.
type process struct {
	pid    int
	status unix.WaitStatus
	ended  chan struct{}
}

func newProcesses(node setup.Node) *processes {
	p := &processes{node: node, running: map[string]*process{}}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		for range children {
			p.reap()
		}
	}()
	return p
}

// reap takes note of all processes that have ended.
func (p *processes) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
		for name, r := range p.running {
			if r.pid == pid {
				r.status = status
				close(r.ended)
				delete(p.running, name)
			}
		}
	}
}

// start starts a component, which logs to a file of its name.
func (p *processes) start(name string, args ...string) error {
	_, err := p.launch(name, args)
	return err
}

// run runs a program to its end.
func (p *processes) run(name string, args ...string) error {
	r, err := p.launch(name, args)
	if err != nil {
		return err
	}
	<-r.ended
	if r.status.ExitStatus() != 0 {
		return fmt.Errorf("%s ended with code %d; see %s", name, r.status.ExitStatus(), p.node.Log(name))
	}
	return nil
}

func (p *processes) launch(name string, args []string) (*process, error) {
	path, err := exec.LookPath(filepath.Join(p.node.BinDir, name))
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	log, err := os.OpenFile(p.node.Log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	defer func() { _ = null.Close() }()
	// Held until the process is known: it may end before that.
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.running[name]; ok {
		return nil, fmt.Errorf("%s runs already", name)
	}
	components := "PATH=" + p.node.BinDir + ":" + os.Getenv("PATH") // they find one another
	started, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{
		Env: append(os.Environ(), components), Files: []*os.File{null, log, log}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	r := &process{pid: started.Pid, ended: make(chan struct{})}
	p.running[name] = r
	return r, started.Release()
}

// kill ends a component without warning, and waits until it has ended.
func (p *processes) kill(name string) error {
	p.mu.Lock()
	r, ok := p.running[name]
	p.mu.Unlock()
	if !ok {
		return fmt.Errorf("%s does not run", name)
	}
	if err := unix.Kill(r.pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill %s: %w", name, err)
	}
	<-r.ended
	return nil
}

// await asks until ready returns no error, or the component has ended, or the time is over.
func (p *processes) await(name string, ready func() error) error {
	var err error
	for deadline := time.Now().Add(patience.For(startTimeout)); time.Now().Before(deadline); time.Sleep(pollEvery) {
		if err = ready(); err == nil {
			return nil
		}
		p.mu.Lock()
		_, ok := p.running[name]
		p.mu.Unlock()
		if !ok {
			return fmt.Errorf("%s ended; see %s", name, p.node.Log(name))
		}
	}
	return fmt.Errorf("%s is not ready: %w", name, err)
}
