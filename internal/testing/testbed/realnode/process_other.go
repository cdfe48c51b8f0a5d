// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package realnode

import "syscall"

// endWithParent is never called, because Unavailable reports that a node needs Linux.
func endWithParent() *syscall.SysProcAttr { return nil }
