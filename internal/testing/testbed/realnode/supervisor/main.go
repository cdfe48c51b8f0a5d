// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command supervisor runs one real node: kubelet, containerd and what they start, in namespaces of their own, so that
// nothing of it is seen outside and all of it ends with one process.
//
//	supervisor run FILE   join cgroups, start init in new namespaces, relay to the API server, clean up at the end
//	supervisor init FILE  the first process inside: mounts, network, containerd, kubelet, and a socket to talk to it
//	supervisor check      say why no node can run here
//
// Under the name runc, containerd starts it in place of runc: it takes the seccomp profile out of a container's configuration,
// since the node's runc is built without a C library, and becomes runc.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"rollset.dev/rollset/internal/testing/testbed/realnode/setup"
)

func main() {
	if err := run(os.Args); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "supervisor:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if filepath.Base(args[0]) == runcName {
		return becomeRunc(args)
	}
	if len(args) == 2 && args[1] == "check" {
		return check()
	}
	if len(args) == 2 && args[1] == nothing {
		return nil
	}
	if len(args) != 3 {
		return errors.New("usage: supervisor run|init FILE, or check")
	}
	node, err := setup.Read(args[2])
	if err != nil {
		return err
	}
	switch args[1] {
	case "run":
		return outside(node, args[2])
	case "init":
		return inside(node)
	default:
		return fmt.Errorf("unknown command %q", args[1])
	}
}
