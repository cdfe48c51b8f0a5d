// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"rollset.dev/rollset/internal/cli/session"
)

// completionScript is the executable that kubectl runs to complete "kubectl rollset …".
const completionScript = `#!/bin/sh
exec kubectl-rollset __complete "$@"
`

func newCompletion(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "completion",
		Short: "Print the script by which kubectl completes this plugin's command lines",
		Long: templates.LongDesc(`Print the script by which kubectl completes this plugin's command lines.

			kubectl runs an executable named kubectl_complete-rollset in the PATH. A link of that name to kubectl-rollset does
			the same.`),
		Example: templates.Examples(`
			kubectl rollset completion >~/bin/kubectl_complete-rollset
			chmod +x ~/bin/kubectl_complete-rollset`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(s.Out, completionScript)
			return err
		},
	}
}
