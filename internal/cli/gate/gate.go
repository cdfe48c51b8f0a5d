// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package gate is the verb that judges a step of a rollout, by the exit code of a command or by what Prometheus measures.
//
// The rule: a gate is written only for the step that was judged, to the version of the set that was seen. The verb needs
// only the rights to read the set and to patch its status. If the step could not be judged, nothing is written.
package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
)

// look is how often the set is read while the verb waits for a step.
const look = 2 * time.Second

// command is one run of the verb.
type command struct {
	session *session.Session
	key     client.ObjectKey
	api     client.Client
	gate    string
	timeout time.Duration
	measure measure
	program []string
}

// finding is the result of judging a step.
type finding struct {
	good    bool
	reason  string
	message string
}

// New returns the command gate.
func New(s *session.Session) *cobra.Command {
	c := command{session: s}
	cmd := &cobra.Command{
		Use:   "gate NAME CONDITION (-- COMMAND [ARG...] | --prometheus URL --query QUERY)",
		Short: "Judge the step of a rollout that waits for a gate",
		Long: templates.LongDesc(`Wait until the pods of a step that has the gate CONDITION are available, judge it, and write the condition.

			A COMMAND judges by its exit code: 0 is True, any other False; the last line that it prints becomes the message.
			QUERY is asked again and again for the time of --for. A comparison, such as "errors:ratio < 0.01", is good while it returns
			something; any other query, such as "errors:ratio < bool 0.01" or "up", while it returns something and nothing of that is 0.
			The first answer that is not good ends it with False; if Prometheus has not answered in the end, nothing is written.

			The exit code is 0 if the condition was set to True, 1 if it was set to False or could not be judged, or if no step of
			the set has it, and 2 if no step waited for it within --timeout. It needs no right but to get rollsets and to patch rollsets/status: the cluster role
			rollset-gate-writer-role gives it.`),
		Example: templates.Examples(`
			kubectl rollset gate web Smoke -- ./smoke-test.sh
			kubectl rollset gate web ErrorRate --prometheus=http://prometheus:9090 --query='errors:ratio < 0.01' --for=10m`),
		Args:              session.Arguments(2, 0, "which gate? Give the NAME of the RollSet and the CONDITION"),
		ValidArgsFunction: s.CompleteNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.measure.url, "prometheus", "", "URL of the Prometheus server that is asked")
	flags.StringVar(&c.measure.query, "query", "", "What it is asked")
	flags.DurationVar(&c.measure.window, "for", 0, "For how long the answer must be good; 0 asks once")
	flags.DurationVar(&c.measure.interval, "interval", 15*time.Second, "How often it is asked")
	flags.DurationVar(&c.timeout, "timeout", 0, "How long to wait for the step at most; 0 means no limit")
	return cmd
}

// run judges a step and writes the result.
func (c *command) run(ctx context.Context, args []string) (err error) {
	if err := c.parse(args); err != nil {
		return err
	}
	if c.api, err = c.session.Client(); err != nil {
		return err
	}
	step, err := c.awaitStep(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.session.Out, "judging step %d of %d of revision %s\n", step.Step, step.Steps, step.Revision)
	var found finding
	if len(c.program) > 0 {
		found, err = runProgram(ctx, c.session, c.program)
	} else {
		found, err = c.measure.judge(ctx, c.session.Clock)
	}
	if err != nil {
		return fmt.Errorf("step %d was not judged, and gate %s is as it was: %w", step.Step, c.gate, err)
	}
	if err := c.write(ctx, step, found); err != nil {
		return err
	}
	if !found.good {
		return &session.ExitError{Code: session.ExitFailed, Err: fmt.Errorf("gate %s of rollset %s is False: %s", c.gate, c.key.Name, found.message)}
	}
	_, err = fmt.Fprintf(c.session.Out, "gate %s of rollset %s is True: %s\n", c.gate, c.key.Name, found.message)
	return err
}

// parse parses the arguments.
func (c *command) parse(args []string) (err error) {
	target := session.Target{}
	if c.key, err = target.Key(c.session, args[:1]); err != nil {
		return err
	}
	c.gate, c.program = args[1], args[2:]
	asks := c.measure.url != "" || c.measure.query != ""
	switch {
	case asks && len(c.program) > 0:
		return errors.New("a command and --prometheus are given; give one of them")
	case asks && (c.measure.url == "" || c.measure.query == ""):
		return errors.New("--prometheus and --query belong together")
	case !asks && len(c.program) == 0:
		return errors.New("what judges the step? Give a command behind --, or --prometheus and --query")
	case c.measure.interval <= 0:
		return fmt.Errorf("--interval is %v; it must be more than nothing", c.measure.interval)
	default:
		return nil
	}
}

// awaitStep waits until a step that has the gate has all its pods.
func (c *command) awaitStep(ctx context.Context) (*v1beta1.RolloutStatus, error) {
	deadline := c.session.Clock.Now().Add(c.timeout)
	limited, cancel := session.Within(ctx, c.timeout)
	defer cancel()
	for told := ""; ; {
		set := &v1beta1.RollSet{}
		if err := c.api.Get(limited, c.key, set); err != nil {
			return nil, session.Late(limited, err, fmt.Sprintf("no step of rollset %s waited for gate %s within %v: %s",
				c.key.Name, c.gate, c.timeout, cmp.Or(told, "the API server does not answer")))
		}
		if gates := gatesOf(set); !slices.Contains(gates, c.gate) {
			return nil, fmt.Errorf("no step of rollset %s has gate %s; its gates are: %s", c.key.Name, c.gate, cmp.Or(strings.Join(gates, ", "), "none"))
		}
		why := c.waits(set)
		if why == "" {
			return set.Status.Rollout, nil
		}
		if why != told {
			fmt.Fprintln(c.session.Out, "waiting:", why)
			told = why
		}
		if c.timeout > 0 && !c.session.Clock.Now().Before(deadline) {
			return nil, &session.ExitError{Code: session.ExitTimeout, Err: fmt.Errorf("no step of rollset %s waited for gate %s within %v: %s", c.key.Name, c.gate, c.timeout, why)}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.session.Clock.After(look):
		}
	}
}

// waits returns why no step can be judged now; empty if one can.
func (c *command) waits(set *v1beta1.RollSet) string {
	r, steps := set.Status.Rollout, set.Spec.UpdateStrategy.RollingUpdate.Steps
	switch {
	case r == nil || r.Step < 1 || int(r.Step) > len(steps):
		return "no step is at work"
	case !hasGate(&steps[r.Step-1], c.gate):
		return fmt.Sprintf("step %d of %d has no gate %s", r.Step, r.Steps, c.gate)
	case r.Phase == v1beta1.RolloutRolling:
		return fmt.Sprintf("the pods of step %d of %d are not available yet", r.Step, r.Steps)
	default:
		return ""
	}
}

// gatesOf returns the gates of all steps, each once.
func gatesOf(set *v1beta1.RollSet) []string {
	var names []string
	for _, step := range set.Spec.UpdateStrategy.RollingUpdate.Steps {
		for _, gate := range step.Gates {
			names = append(names, gate.ConditionType)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func hasGate(step *v1beta1.RolloutStep, name string) bool {
	return slices.ContainsFunc(step.Gates, func(g v1beta1.StepGate) bool { return g.ConditionType == name })
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
