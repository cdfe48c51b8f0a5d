// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Command film draws the log of a golden rollout as an SVG. Usage:
//
//	film internal/testing/sim/testdata/broken-update.txtar >docs/images/rollout.svg
//
// # The rule
//
// A column is a line of the log, a row is a pod, and a box is the state of the pod after that line. Nothing is drawn that the
// log does not say.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "film:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: film <golden rollout>")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	f, err := parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	_, err = os.Stdout.WriteString(draw(f))
	return err
}
