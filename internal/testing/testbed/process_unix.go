// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package testbed

import "syscall"

// dieWithParent returns a process group for Stop to kill, because there is no parent death signal outside Linux.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
