// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package move is the verbs that move workloads of other kinds to RollSet, and back: convert, adopt and release.
//
// The rule: what would be lost is an error until the user accepts it. Everything that may be refused is tried as a dry run
// before anything is written. Only the labels of running pods are changed. Each step can be the last: the same command line
// resumes where the one before was stopped.
package move

import (
	"github.com/spf13/cobra"

	"rollset.dev/rollset/internal/cli/session"
)

// Commands returns the verbs of this package.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{newConvert(s), newAdopt(s), newRelease(s)}
}
