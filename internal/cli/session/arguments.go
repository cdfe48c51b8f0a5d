// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Arguments accepts a number of arguments; 0 as the upper bound is none. If there are fewer, the error is the question that is left.
func Arguments(least, most int, question string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return errors.New(question)
		case most > 0 && len(args) > most:
			return fmt.Errorf("%d arguments are given (%s), and at most %d are expected", len(args), strings.Join(args, " "), most)
		default:
			return nil
		}
	}
}
