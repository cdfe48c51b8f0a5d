// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/cli/view"
	"rollset.dev/rollset/internal/model/revision"
)

// restartedAt is the annotation that kubectl rollout restart changes in a template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

func newUndo(s *session.Session) *cobra.Command {
	var to int64
	cmd := &cobra.Command{
		Use:   "undo (NAME | -f FILE)",
		Short: "Go back to an earlier revision",
		Long: templates.LongDesc(`Go back to an earlier revision: write its template into the spec.

			Without --to-revision that is the newest revision other than the one in the spec that is proven: all pods were available
			at it once. A manifest in version control still has the other template: change it too.`),
		Example: templates.Examples(`
			kubectl rollset undo web
			kubectl rollset undo web --to-revision=3 --wait`),
	}
	c := newChange(s, cmd, "rolled back")
	cmd.Flags().Int64Var(&to, "to-revision", 0, "The number of the revision, as history shows it; 0 is the last proven one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if to < 0 {
			return fmt.Errorf("--to-revision is %d; revisions are counted from 1", to)
		}
		c.judges = to == 0
		return c.run(cmd.Context(), args, func(ctx context.Context, api client.Client, set set) (string, error) { return undo(ctx, api, set, to) })
	}
	return cmd
}

// undo writes the template of a revision into the spec.
func undo(ctx context.Context, c client.Client, set set, to int64) (string, error) {
	revisions, err := view.Revisions(ctx, c, set.RollSet)
	if err != nil {
		return "", err
	}
	find := func() (*appsv1.ControllerRevision, error) { return view.LastProven(set.RollSet, revisions) }
	if to != 0 {
		find = func() (*appsv1.ControllerRevision, error) { return view.Numbered(set.RollSet, revisions, to) }
	}
	target, err := find()
	if err != nil {
		return "", err
	}
	if target.Name == set.Status.UpdateRevision && set.Status.ObservedGeneration == set.Generation {
		return fmt.Sprintf("revision %d is the one in the spec", target.Revision), nil
	}
	var data struct {
		Spec struct {
			Template json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	var template map[string]any
	if err := errors.Join(json.Unmarshal(target.Data.Raw, &data), utiljson.Unmarshal(data.Spec.Template, &template)); err != nil || template == nil {
		return "", fmt.Errorf("revision %d (%s) holds no template", target.Revision, target.Name)
	}
	if err := unstructured.SetNestedMap(set.raw.Object, template, "spec", "template"); err != nil {
		return "", err
	}
	steps := 0 // going back takes none
	if !revision.WasProven(target) {
		steps = stepsOf(set.RollSet)
	}
	next := fmt.Sprintf("to revision %d (%s): %s", target.Revision, target.Name, rollsNext(set.RollSet, target.Name, steps))
	if !revision.WasProven(target) {
		next += fmt.Sprintf("\nwarning: revision %d is not proven: never were all pods available at it", target.Revision)
	}
	return next, nil
}

func newRestart(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restart (NAME | -f FILE)",
		Short: "Replace all pods within the limits of the update strategy",
		Long: templates.LongDesc(`Replace all pods within the limits of the update strategy, as kubectl rollout restart does: an annotation of
			the template gets the time, so that the template is another one.`),
		Example: templates.Examples(`kubectl rollset restart web --wait`),
	}
	c := newChange(s, cmd, "restarted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		at := s.Clock.Now().Format(time.RFC3339)
		return c.run(cmd.Context(), args, func(_ context.Context, _ client.Client, set set) (string, error) {
			err := unstructured.SetNestedField(set.raw.Object, at, "spec", "template", "metadata", "annotations", restartedAt)
			return rollsNext(set.RollSet, aNewRevision, stepsOf(set.RollSet)), err
		})
	}
	return cmd
}

func newPause(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause (NAME | -f FILE)",
		Short: "Freeze the mix of revisions",
		Long: templates.LongDesc(`Freeze the mix of revisions: no pod moves to another one until the set is resumed. Scaling goes on, and lost
			pods come back.`),
	}
	c := newChange(s, cmd, "paused")
	c.await.Judge = func(set *v1beta1.RollSet) (done, pending bool) {
		observed := set.Status.ObservedGeneration >= set.Generation
		return observed && set.Spec.UpdateStrategy.RollingUpdate.Paused, !observed
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), args, func(_ context.Context, _ client.Client, set set) (string, error) {
			if set.Spec.UpdateStrategy.RollingUpdate.Paused {
				return "it is paused already", nil
			}
			err := unstructured.SetNestedField(set.raw.Object, true, "spec", "updateStrategy", "rollingUpdate", "paused")
			return fmt.Sprintf("%d of %s updated; no more move until kubectl rollset resume %s",
				set.Status.UpdatedReplicas, pods(int(set.Status.Replicas)), set.Name), err
		})
	}
	return cmd
}

func newResume(s *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume (NAME | -f FILE)",
		Short: "Let pods move again",
	}
	c := newChange(s, cmd, "resumed")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), args, func(_ context.Context, _ client.Client, set set) (string, error) {
			if !set.Spec.UpdateStrategy.RollingUpdate.Paused {
				return "it is not paused", nil
			}
			err := unstructured.SetNestedField(set.raw.Object, false, "spec", "updateStrategy", "rollingUpdate", "paused")
			return fmt.Sprintf("%d of %s updated", set.Status.UpdatedReplicas, pods(int(set.Status.Replicas))), err
		})
	}
	return cmd
}
