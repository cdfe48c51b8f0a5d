// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package move is the verbs that bring workloads of other kinds over to RollSet, and back: convert, adopt and release.
//
// The rule: what would be lost is an error until the user accepts it. Everything that may be refused is tried as a dry run
// before anything is written, no running pod is touched but for its labels, and each step can be the last: the same command
// line goes on where the one before was ended.
package move

import (
	"github.com/spf13/cobra"

	"rollset.dev/rollset/internal/cli/session"
)

// Commands returns the verbs of this package.
func Commands(s *session.Session) []*cobra.Command {
	return []*cobra.Command{newConvert(s), newAdopt(s), newRelease(s)}
}
