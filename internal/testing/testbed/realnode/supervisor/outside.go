// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"rollset.dev/rollset/internal/testing/testbed/realnode/setup"
)

const pollEvery = 20 * time.Millisecond

// outside runs init in new namespaces until it ends or this process is asked to end. Then it ends all that init has
// started, by ending init, and takes the node's cgroups away.
func outside(node setup.Node, file string) error {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	api, err := net.Listen("unix", node.APISocket())
	if err != nil {
		return fmt.Errorf("listen for the node: %w", err)
	}
	go accept(api, func(c net.Conn) { relay(c, "tcp", node.APIServer) })
	groups, err := joinCgroups(cgroupName(node.Dir))
	if err != nil {
		return err
	}
	ended, kill, err := startInside("init", file)
	if err != nil {
		return errors.Join(err, groups.leave(), groups.remove())
	}
	err = groups.leave()
	select {
	case <-asked:
		err = errors.Join(err, kill())
		_, _ = fmt.Fprintln(os.Stderr, "the node ended:", <-ended)
	case end := <-ended:
		err = errors.Join(err, fmt.Errorf("the node ended by itself: %w", end))
	}
	return errors.Join(err, groups.remove())
}

// cgroupName returns the name of the cgroups of the node in a folder.
func cgroupName(dir string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(dir)) // never fails
	return fmt.Sprintf("rollset-node-%08x", h.Sum32())
}

// nothing is the command that check starts in new namespaces.
const nothing = "nothing"

// check returns an error if this machine lacks what a node needs.
func check() error {
	groups, err := joinCgroups(fmt.Sprintf("rollset-node-check-%d", os.Getpid()))
	if err != nil {
		return err
	}
	ended, _, err := startInside(nothing)
	if err == nil {
		err = <-ended
	}
	return errors.Join(err, groups.leave(), groups.remove())
}

// startInside starts this program in new namespaces. It dies with this process, however that ends: the kernel does it,
// when the thread ends that has started it.
func startInside(args ...string) (ended <-chan error, kill func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP,
		Pdeathsig: syscall.SIGKILL,
	}
	started, end := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			end <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, nil, fmt.Errorf("start the node in namespaces of its own: %w", err)
	}
	return end, cmd.Process.Kill, nil
}

// accept serves each connection until the listener is closed.
func accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go serve(c)
	}
}

// relay connects a connection with an address until either side closes.
func relay(c net.Conn, network, address string) {
	defer func() { _ = c.Close() }()
	d, err := net.Dial(network, address) //nolint:gosec // the address is that of the API server, from the settings
	if err != nil {
		return // the client sees that it is closed
	}
	join(c, d)
}

// join copies both ways until both have ended.
func join(a, b net.Conn) {
	defer func() { _ = b.Close() }()
	done := make(chan struct{})
	go func() {
		copyHalf(a, b)
		close(done)
	}()
	copyHalf(b, a)
	<-done
}

// copyHalf copies one way, and passes its end on.
func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from) // a connection that breaks is one that ends
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
