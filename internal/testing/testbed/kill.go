// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package testbed

import (
	"errors"
	"syscall"
)

// killGroup kills a process and those it started. That it is gone already is fine.
func killGroup(pid int) error {
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
