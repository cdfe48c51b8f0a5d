// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-rollset is the kubectl plugin "kubectl rollset". It shows RollSets, controls their rollouts, and moves
// other workloads to RollSet.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"rollset.dev/rollset/internal/cli"
	"rollset.dev/rollset/internal/cli/session"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx = logr.NewContext(ctx, logr.Discard()) // the command itself prints what users must know
	s := session.New(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, clock.RealClock{})
	code := cli.Run(ctx, s, os.Args)
	stop()
	os.Exit(code)
}
