// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line "kubectl rollset". Its subpackages hold the verbs, grouped by concern.
//
// The rule: a command keeps no state of its own, and has only its user's rights. It does one thing, whole or not at all. A
// failure is one line on standard error and an exit code.
package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"rollset.dev/rollset/internal/cli/explain"
	"rollset.dev/rollset/internal/cli/gate"
	"rollset.dev/rollset/internal/cli/move"
	"rollset.dev/rollset/internal/cli/predict"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/cli/steer"
	"rollset.dev/rollset/internal/cli/view"
)

// completer is the name under which kubectl runs the plugin to complete a command line.
const completer = "kubectl_complete-rollset"

// Run runs the command line of a process, args[0] being the program's name, and returns the exit code.
func Run(ctx context.Context, s *session.Session, args []string) int {
	root := New(s)
	root.SetArgs(args[1:])
	if strings.TrimSuffix(filepath.Base(args[0]), ".exe") == completer {
		root.SetArgs(slices.Concat([]string{cobra.ShellCompRequestCmd}, args[1:]))
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(s.ErrOut, "interrupted")
		return session.ExitInterrupted
	}
	if message := session.Explain(err); message != "" {
		fmt.Fprintln(s.ErrOut, "error:", message)
	}
	if exit, ok := errors.AsType[*session.ExitError](err); ok {
		return exit.Code
	}
	return session.ExitFailed
}

// New returns the command line.
func New(s *session.Session) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-rollset",
		Short: "See and steer RollSets",
		Long: templates.LongDesc(`See RollSets, steer their rollouts, and move other workloads over.

			A RollSet is given as NAME or rls/NAME. All flags that say which cluster and namespace are meant, and as whom, are
			kubectl's.`),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl rollset"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	s.AddFlags(root.PersistentFlags())
	root.AddCommand(view.Commands(s)...)
	root.AddCommand(steer.Commands(s)...)
	root.AddCommand(move.Commands(s)...)
	root.AddCommand(gate.New(s), explain.New(s), predict.NewPlan(s, pluginVersion()), newVersion(s), newMigrateStorage(s), newCompletion(s))
	return root
}
