// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
)

func newPromote(s *session.Session) *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "promote (NAME | -f FILE)",
		Short: "End the pause of the step at work, or all steps",
		Long: templates.LongDesc(`End the pause of the step at work. Its soak and its gates go on.

			With --full all steps end, their soaks and gates too, and all pods move.`),
		Example: templates.Examples(`
			kubectl rollset promote web
			kubectl rollset promote web --full --wait`),
	}
	c := newChange(s, cmd, "promoted")
	c.request = v1beta1.PromoteAnnotation
	cmd.Flags().BoolVar(&full, "full", false, "End all steps, soaks and gates")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var seen *v1beta1.RolloutStatus
		return c.run(cmd.Context(), args, func(_ context.Context, _ client.Client, set set) (string, error) {
			r := set.Status.Rollout
			if seen == nil {
				seen = r
			}
			if seen != nil && (r == nil || r.Revision != seen.Revision || r.Step != seen.Step) {
				return "", fmt.Errorf("another step of rollset %s has begun meanwhile; nothing was done; look at it and try again", set.Name)
			}
			if full {
				return promoteAll(set)
			}
			return promoteStep(set)
		})
	}
	return cmd
}

// promoteStep ends the pause of the step at work.
func promoteStep(set set) (string, error) {
	r, done, err := stepAtWork(set)
	if done || err != nil {
		return "all steps are done already", err
	}
	if !set.Spec.UpdateStrategy.RollingUpdate.Steps[r.Step-1].Pause {
		return fmt.Sprintf("step %d of %d has no pause; promote --full ends it, and all others", r.Step, r.Steps), nil
	}
	value := fmt.Sprintf("%s/%d", r.Revision, r.Step)
	if set.Annotations[v1beta1.PromoteAnnotation] == value && r.IgnoredPromotion == "" {
		return fmt.Sprintf("step %d of %d is promoted already", r.Step, r.Steps), nil
	}
	next := fmt.Sprintf("step %d of %d: ends when its soak and its gates let it", r.Step, r.Steps)
	if r.Phase == v1beta1.RolloutPaused {
		next = fmt.Sprintf("step %d of %d ends", r.Step, r.Steps)
	}
	ask(set, v1beta1.PromoteAnnotation, value)
	return next, nil
}

// promoteAll ends all steps.
func promoteAll(set set) (string, error) {
	r, done, err := stepAtWork(set)
	if done || err != nil {
		return "all steps are done already", err
	}
	next := fmt.Sprintf("step %d of %d and all that follow end: %s", r.Step, r.Steps, rollsNext(set.RollSet, r.Revision, 0))
	ask(set, v1beta1.PromoteAnnotation, r.Revision+"/all")
	return next, nil
}

// stepAtWork returns the step in the status, or done.
func stepAtWork(set set) (r *v1beta1.RolloutStatus, done bool, err error) {
	switch r = set.Status.Rollout; {
	case r == nil:
		return nil, false, fmt.Errorf("rollset %s has no step at work; nothing was done", set.Name)
	case r.Step == 0:
		return nil, false, fmt.Errorf("revision %s of rollset %s is given up; nothing was done; kubectl rollset retry %s begins it again", r.Revision, set.Name, set.Name)
	case int(r.Step) > len(set.Spec.UpdateStrategy.RollingUpdate.Steps):
		return r, true, nil
	default:
		return r, false, nil
	}
}

// ask writes an annotation by which users make a request, and removes those that stand against it.
func ask(set set, key, value string, others ...string) {
	annotations := map[string]string{}
	maps.Copy(annotations, set.raw.GetAnnotations())
	annotations[key] = value
	for _, other := range others {
		delete(annotations, other)
	}
	set.raw.SetAnnotations(annotations)
}

func newAbort(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "abort (NAME | -f FILE)",
		Short: "Give the rollout up: all pods go back",
		Long: templates.LongDesc(`Give the update revision up: all pods go back to the current one, within the limits of the update strategy, and
			stay there until the template changes, or until retry. The spec stays as it is.

			With --wait the command waits until all are back.`),
		Example: templates.Examples(`kubectl rollset abort web --wait`),
	}
	c := newChange(s, cmd, "aborted")
	c.request = v1beta1.AbortAnnotation
	c.await.Judge = func(set *v1beta1.RollSet) (done, pending bool) {
		stalled := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionStalled)
		return stalled != nil && stalled.Reason == v1beta1.ReasonRolledBack, true
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), args, func(_ context.Context, _ client.Client, set set) (string, error) {
			switch s := &set.Status; {
			case rejected(set.RollSet):
				return fmt.Sprintf("revision %s is given up already", s.UpdateRevision), nil
			case s.UpdateRevision == s.CurrentRevision:
				return "", fmt.Errorf("rollset %s rolls nothing out; nothing was done; kubectl rollset undo %s goes back to an earlier revision", set.Name, set.Name)
			default:
				ask(set, v1beta1.AbortAnnotation, s.UpdateRevision, v1beta1.RetryAnnotation)
				return "all pods go back to revision " + s.CurrentRevision, nil
			}
		})
	}
	return cmd
}

func newRetry(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry (NAME | -f FILE)",
		Short: "Try a revision again that was given up",
		Long: templates.LongDesc(`Try the update revision again, from its first step, after it was aborted, failed at a step or missed its
			deadline, and was rolled back.`),
		Example: templates.Examples(`kubectl rollset retry web`),
	}
	c := newChange(s, cmd, "tried again")
	c.request = v1beta1.RetryAnnotation
	c.await.Judge = func(set *v1beta1.RollSet) (done, pending bool) { return false, rejected(set) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), args, func(_ context.Context, _ client.Client, set set) (string, error) {
			if !rejected(set.RollSet) {
				return "", errors.New("no revision of rollset " + set.Name + " is given up; nothing was done")
			}
			ask(set, v1beta1.RetryAnnotation, set.Status.UpdateRevision, v1beta1.AbortAnnotation, v1beta1.PromoteAnnotation)
			return rollsNext(set.RollSet, set.Status.UpdateRevision, stepsOf(set.RollSet)), nil
		})
	}
	return cmd
}

// rejected reports whether the status of a set shows that its update revision was given up.
func rejected(set *v1beta1.RollSet) bool {
	c := meta.FindStatusCondition(set.Status.Conditions, v1beta1.ConditionProgressing)
	return c != nil && c.Reason == v1beta1.ReasonRolledBack
}
