// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

func newStatus(s *session.Session) *cobra.Command {
	var target session.Target
	var timeout time.Duration
	watch := true
	cmd := &cobra.Command{
		Use:   "status (NAME | -f FILE)",
		Short: "Wait until a rollout is done, or has failed",
		Long: templates.LongDesc(`Wait until a rollout is done as far as partition and pause allow, or has failed.

			The exit code is 0 if it is done, 1 if it has failed (the set is Stalled), 2 if it is not done within --timeout, 3 if
			it is paused, and 4 if the pods that are not updated wait to be deleted (updateStrategy OnDelete).`),
		Example:           templates.Examples(`kubectl rollset status web --timeout=10m`),
		ValidArgsFunction: s.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := target.Key(s, args)
			if err != nil {
				return err
			}
			if !watch {
				ctx, cancel := session.Within(cmd.Context(), timeout)
				defer cancel()
				return session.Late(ctx, printStatus(ctx, s, key), fmt.Sprintf("rollset %s was not read within %v: the API server does not answer", key.Name, timeout))
			}
			return Await(cmd.Context(), s, key, AwaitOptions{Timeout: timeout})
		},
	}
	target.AddFlag(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "Wait for the end of the rollout")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "How long to wait at most; 0 means no limit")
	return cmd
}

// verdict is the progress of a rollout.
type verdict struct {
	done, failed bool
	message      string
	// rests is the exit code of a rollout that continues only if a user does something; 0 if it does not wait for that.
	rests int
}

// end returns the error with which a command ends that waits for a rollout; nil if it is done.
func (v verdict) end(key client.ObjectKey) error {
	switch {
	case v.failed:
		return &session.ExitError{Code: session.ExitFailed, Err: fmt.Errorf("rollset %s is stalled: %s", key.Name, v.message)}
	case v.rests == session.ExitPaused:
		return &session.ExitError{Code: v.rests, Err: fmt.Errorf("rollset %s: %s; kubectl rollset resume %s lets the rollout go on", key.Name, v.message, key.Name)}
	case v.rests == session.ExitOnDelete:
		return &session.ExitError{Code: v.rests, Err: fmt.Errorf(
			"rollset %s: %s; kubectl rollset delete-pod POD has one replaced", key.Name, v.message)}
	default:
		return nil
	}
}

// judge judges the rollout of a generation, or of the one in the spec if that is newer.
func judge(set *v1beta1.RollSet, generation int64) verdict {
	if set.Status.ObservedGeneration < max(set.Generation, generation) {
		return verdict{message: "waiting for the controller to observe the change"}
	}
	conditions := set.Status.Conditions
	if stalled := meta.FindStatusCondition(conditions, v1beta1.ConditionStalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
		return verdict{failed: true, message: stalled.Reason + ": " + stalled.Message}
	}
	ready := meta.FindStatusCondition(conditions, v1beta1.ConditionReady)
	if ready == nil {
		return verdict{message: "waiting for the controller to report"}
	}
	v := verdict{done: ready.Status == metav1.ConditionTrue, message: ready.Message}
	progressing := meta.FindStatusCondition(conditions, v1beta1.ConditionProgressing)
	stepping := set.Status.Rollout != nil && set.Status.Rollout.Phase == v1beta1.RolloutPaused
	switch {
	case (v.done || stepping) && progressing != nil && progressing.Reason == v1beta1.ReasonPaused:
		v.done, v.rests = true, session.ExitPaused
	case v.done && set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteStrategy && set.Status.UpdatedReplicas < set.Status.Replicas:
		v.rests = session.ExitOnDelete
	}
	return v
}

// confirm checks that pods wait to be deleted. The manager may not have reported yet what a user deleted a moment ago. Users who may
// not read pods get the verdict of the status.
func confirm(ctx context.Context, c client.Reader, set *v1beta1.RollSet, v verdict) verdict {
	if v.rests != session.ExitOnDelete {
		return v
	}
	pods, err := Pods(ctx, c, set)
	waits := func(pod *corev1.Pod) bool {
		return !podstate.Terminating(pod) && !snapshot.SpecifiedDelete(pod) && pod.Labels[v1beta1.RevisionLabel] != set.Status.UpdateRevision
	}
	if err == nil && !slices.ContainsFunc(pods, waits) {
		return verdict{message: "waiting for the controller to observe the deletion of pods"}
	}
	return v
}

func printStatus(ctx context.Context, s *session.Session, key client.ObjectKey) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	set, err := getSet(ctx, c, key)
	if err != nil {
		return err
	}
	v := confirm(ctx, c, set, judge(set, 0))
	if err := v.end(key); err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, v.message)
	return err
}

// AwaitOptions configure what to wait for.
type AwaitOptions struct {
	// Generation is the generation to wait for at least.
	Generation int64
	// Timeout is how long to wait at most; 0 means no limit.
	Timeout time.Duration
	// Judge, if not nil, judges the set first. What is waited for may be done, or may not have begun, so that the status of
	// the set is about something else.
	Judge func(*v1beta1.RollSet) (done, pending bool)
}

// judge judges the rollout of a set.
func (o AwaitOptions) judge(set *v1beta1.RollSet) verdict {
	v := judge(set, o.Generation)
	if o.Judge == nil {
		return v
	}
	done, pending := o.Judge(set)
	switch {
	case done:
		v = verdict{done: true, message: v.message}
	case pending:
		v = verdict{message: v.message}
	}
	return v
}

// Await waits until the rollout of a set is done, and prints its progress whenever that changes.
func Await(ctx context.Context, s *session.Session, key client.ObjectKey, o AwaitOptions) error {
	ctx, cancel := session.Within(ctx, o.Timeout)
	defer cancel()
	told := "the API server does not answer"
	err := await(ctx, s, key, o, &told)
	return session.Late(ctx, err, fmt.Sprintf("rollset %s is not done within %v: %s", key.Name, o.Timeout, told))
}

// await waits until the rollout of a set is done, and records what was told last.
func await(ctx context.Context, s *session.Session, key client.ObjectKey, o AwaitOptions, told *string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	set, err := getSet(ctx, c, key)
	if err != nil {
		return err
	}
	f := newFollower(c, s.Clock)
	store, err := f.follow(ctx, &v1beta1.RollSet{}, &v1beta1.RollSetList{}, client.ListOptions{
		Namespace: key.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name),
	})
	if err != nil {
		return err
	}
	for {
		now, err := stored(store.List(), set)
		if err != nil {
			return err
		}
		v := confirm(ctx, c, now, o.judge(now))
		if err := v.end(key); err != nil {
			return err
		}
		if v.message != *told {
			fmt.Fprintln(s.Out, v.message)
			*told = v.message
		}
		if v.done {
			return nil
		}
		select {
		case <-f.changed:
		case err := <-f.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errDeleted means that the set was deleted while it was watched.
var errDeleted = errors.New("the set was deleted meanwhile")

// stored returns the newest copy of a set. It fails if the set is deleted, or another one has its name.
func stored(objects []any, set *v1beta1.RollSet) (*v1beta1.RollSet, error) {
	for _, object := range objects {
		if now, ok := object.(*v1beta1.RollSet); ok && now.UID == set.UID {
			return now, nil
		}
	}
	return nil, fmt.Errorf("rollset %s: %w", set.Name, errDeleted)
}
