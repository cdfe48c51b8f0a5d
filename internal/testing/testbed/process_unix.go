// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package testbed

import "syscall"

// dieWithParent is as much as there is without Linux's parent death signal: a group of its own, for Stop to kill.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
