// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"rollset.dev/rollset/internal/cli/session"
)

func newVersion(s *session.Session) *cobra.Command {
	clientOnly := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the plugin and of the manager",
		Long: templates.LongDesc(`Print the versions of the plugin and of the manager, and whether they fit.

			The manager's version is its image's tag. It takes the right to list Deployments in the manager's namespace.`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return printVersions(cmd.Context(), s, clientOnly) },
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Print the plugin's version only, without asking a cluster")
	return cmd
}

// pluginVersion returns the version of the module that the plugin was built from.
func pluginVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "unknown")
}

func printVersions(ctx context.Context, s *session.Session, clientOnly bool) error {
	own := pluginVersion()
	if _, err := fmt.Fprintf(s.Out, "plugin:  %s\n", own); err != nil || clientOnly {
		return err
	}
	skew := s.Skew(ctx, own)
	if _, err := fmt.Fprintf(s.Out, "manager: %s\n", skew.Manager); err != nil {
		return err
	}
	if skew.Warning != "" {
		fmt.Fprintln(s.ErrOut, "warning:", skew.Warning)
	}
	return nil
}
