// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import "syscall"

// dieWithParent has a child killed by the kernel when its parent dies, however that happens.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
