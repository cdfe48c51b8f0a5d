// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package predict is the verb that predicts a rollout.
//
// The rule: nothing is changed. The edit and one pod of it are sent as dry runs, so that the API server sets defaults and
// admits them. Everything else is read.
package predict

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/forecast"
	"rollset.dev/rollset/internal/model/attempt"
)

// exitChanges is the exit code of --detailed-exitcode if there are changes.
const exitChanges = 2

// plan is the command with its flags.
type plan struct {
	session *session.Session
	version string

	edit         edit
	output       string
	offline      bool
	detailedExit bool
}

// NewPlan returns the verb plan of the plugin.
func NewPlan(s *session.Session, version string) *cobra.Command {
	p := &plan{session: s, version: version}
	cmd := &cobra.Command{
		Use:   "plan [NAME] [--set-image CONTAINER=IMAGE] [-f FILE]",
		Short: "Show what an edit will do before it is made",
		Long: templates.LongDesc(`Show what an edit will do before it is made.

			The controller of this plugin's version runs on a copy of the set, its pods, claims and revisions, on a clock that
			jumps from one event to the next. The plan lists its writes, the class of the change, the lowest availability, the
			time, and what happens if the new pods never become ready. Nothing is changed: the edit and one pod of it are sent to
			the API server as dry runs.

			Without an edit, the plan lists the writes that the controller still has to make.`),
		Example: templates.Examples(`
			# What will a new image do?
			kubectl rollset plan web --set-image app=web:2.0

			# What will this file do, to a set that may not exist yet?
			kubectl rollset plan -f web.yaml

			# Draw it.
			kubectl rollset plan web --set-image app=web:2.0 -o html > plan.html

			# Without a cluster: from what is to what will be.
			kubectl rollset plan --offline -f old.yaml -f new.yaml`),
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: s.CompleteNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return p.run(cmd.Context(), args) },
	}
	flags := cmd.Flags()
	p.edit.addFlags(flags)
	flags.StringVarP(&p.output, "output", "o", "", "Output format: wide, json, svg or html")
	flags.BoolVar(&p.offline, "offline", false, "Ask no cluster: the first file is the set as it is, the second as it will be")
	flags.BoolVar(&p.detailedExit, "detailed-exitcode", false, "Exit with 0 if nothing changes, with 2 if something does, and with 1 on an error")
	return cmd
}

func (p *plan) run(ctx context.Context, args []string) error {
	if !slices.Contains([]string{"", "wide", "json", "svg", "html"}, p.output) {
		return fmt.Errorf("-o %s is no output format; give wide, json, svg or html", p.output)
	}
	if err := p.edit.check(); err != nil {
		return err
	}
	f, err := p.forecast(ctx, args)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := p.print(&out, f); err != nil {
		return fmt.Errorf("print the plan: %w", err)
	}
	if _, err := io.Copy(p.session.Out, &out); err != nil {
		return fmt.Errorf("print the plan: %w", err)
	}
	if p.detailedExit && f.Changes {
		return &session.ExitError{Code: exitChanges}
	}
	return nil
}

func (p *plan) print(w io.Writer, f *forecast.Forecast) error {
	switch p.output {
	case "json":
		return f.JSON(w)
	case "svg":
		return f.SVG(w)
	case "html":
		return f.HTML(w)
	default:
		return f.Text(w, p.output == "wide")
	}
}

// forecast reads the objects and computes the plan.
func (p *plan) forecast(ctx context.Context, args []string) (*forecast.Forecast, error) {
	if p.offline {
		in, err := p.fromFiles(ctx, args)
		if err != nil {
			return nil, err
		}
		return forecast.Run(ctx, in)
	}
	c, err := p.session.Client()
	if err != nil {
		return nil, err
	}
	key, err := p.edit.key(p.session, args)
	if err != nil {
		return nil, err
	}
	in, notes, err := p.read(ctx, c, key)
	if err != nil {
		return nil, err
	}
	f, err := forecast.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	f.CannotKnow = append(f.CannotKnow, notes...)
	f.InTheWay = append(f.InTheWay, p.obstacles(ctx, c, in, f)...)
	p.warn(ctx, c, in)
	return f, nil
}

// read reads the set and everything that the controller sees of it. It sends the edit and one pod of it as dry runs.
func (p *plan) read(ctx context.Context, c client.Client, key client.ObjectKey) (in forecast.Input, notes []string, err error) {
	before := &v1beta1.RollSet{}
	err = c.Get(ctx, key, before)
	switch {
	case apierrors.IsNotFound(err) && p.edit.creates():
		before = nil
	case err != nil:
		return in, nil, err
	}
	in.Before = before
	if in.Before != nil && in.Before.DeletionTimestamp != nil {
		return in, nil, fmt.Errorf("rollset %s is being deleted; nothing is planned for it", key.Name)
	}
	if in.Objects, err = readRevisions(ctx, c, key.Namespace); err != nil {
		return in, nil, err
	}
	if in.After, err = p.edit.apply(ctx, c, before, in.Objects); err != nil {
		return in, nil, err
	}
	if err := forecast.TooLarge(in.Before, in.After); err != nil {
		return in, nil, err
	}
	objects, notes, err := readObjects(ctx, c, key.Namespace)
	if err != nil {
		return in, nil, err
	}
	in.Objects, in.Now = append(in.Objects, objects...), p.session.Clock.Now()
	around, more := readAround(ctx, c, in.After)
	in.Objects, notes = append(in.Objects, around...), append(notes, more...)
	in.Sample, in.Refusal, err = samplePod(ctx, c, in.After)
	if err != nil {
		notes = append(notes, "admission: one pod of the template could not be sent as a dry run: "+session.Explain(err))
	}
	return in, notes, nil
}

// warn prints on standard error what makes the plan uncertain.
func (p *plan) warn(ctx context.Context, c client.Client, in forecast.Input) {
	if skew := p.session.Skew(ctx, p.version); skew.Warning != "" {
		fmt.Fprintln(p.session.ErrOut, "warning:", skew.Warning)
	}
	if in.Before == nil {
		return
	}
	now := &v1beta1.RollSet{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(in.Before), now); err == nil && now.Generation != in.Before.Generation {
		fmt.Fprintf(p.session.ErrOut, "warning: rollset %s was edited meanwhile (generation %d, planned on %d); plan again\n",
			now.Name, now.Generation, in.Before.Generation)
	}
}

// samplePod sends a pod of the template as a dry run. A refusal is not an error: it is part of the forecast.
func samplePod(ctx context.Context, c client.Client, set *v1beta1.RollSet) (sample *corev1.Pod, refusal string, err error) {
	pod := forecast.SamplePod(set)
	err = c.Create(ctx, pod, client.DryRunAll)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return pod, "", nil
	case strings.Contains(err.Error(), "exceeded quota"):
		return nil, "", err
	case attempt.LacksRights(err):
		return nil, "", err // it is the user who may not create pods
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err) && errors.As(err, &status):
		return nil, err.Error(), nil
	default:
		return nil, "", err
	}
}
