// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
)

func TestCleanStopIsNoError(t *testing.T) {
	var lines []string
	ctx, cancel := context.WithCancel(t.Context())
	log := quietStop(ctx, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})).WithName("setup").WithValues("a", 1)
	lost := errors.New(leaseLost)

	log.Error(lost, "before") // another manager has taken the lease
	cancel()
	log.Error(lost, "after")
	log.Error(errors.New("anything else"), "after")
	log.Info("after")
	if len(lines) != 3 {
		t.Errorf("logged %q, want all but the loss of the lease after the stop", lines)
	}
}
