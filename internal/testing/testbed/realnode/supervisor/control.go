// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"

	"rollset.dev/rollset/internal/testing/testbed/realnode/setup"
)

// serve answers the request of one connection.
func (s *machine) serve(c net.Conn) {
	line, err := bufio.NewReader(io.LimitReader(c, 1<<10)).ReadString('\n')
	if err != nil {
		_ = c.Close()
		return
	}
	if address, ok := strings.CutPrefix(strings.TrimSpace(line), setup.Dial); ok {
		s.dial(c, address)
		return
	}
	defer func() { _ = c.Close() }()
	answer(c, s.do(strings.TrimSpace(line)))
}

// do carries out a request that is answered by a line and nothing else.
func (s *machine) do(request string) error {
	switch request {
	case setup.Ping:
		return nil
	case setup.KillKubelet:
		return s.processes.kill("kubelet")
	case setup.StartKubelet:
		return s.startKubelet()
	default:
		return fmt.Errorf("unknown request %q", request)
	}
}

// dial connects the client with an address that is reached from inside the node, such as that of a pod.
func (s *machine) dial(c net.Conn, address string) {
	d, err := net.DialTimeout("tcp", address, startTimeout)
	answer(c, err)
	if err != nil {
		_ = c.Close()
		return
	}
	defer func() { _ = c.Close() }()
	join(c, d)
}

func answer(c net.Conn, err error) {
	if err != nil {
		_, _ = fmt.Fprintln(c, strings.ReplaceAll(err.Error(), "\n", " ")) // a client that has gone needs no answer
		return
	}
	_, _ = fmt.Fprintln(c, setup.OK)
}
