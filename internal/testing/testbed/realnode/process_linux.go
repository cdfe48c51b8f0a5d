// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package realnode

import "syscall"

// endWithParent has the supervisor end when its parent does, however that happens.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
