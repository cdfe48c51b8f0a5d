// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
)

// These are the reasons of the conditions that the verb writes.
const (
	reasonSucceeded = "CommandSucceeded"
	reasonFailed    = "CommandFailed"
	reasonGood      = "QueryGood"
	reasonBad       = "QueryBad"
)

// attempts is how often a write is tried after conflicts with other clients.
const attempts = 20

// maxMessage is the maximum number of bytes in the message of a condition.
const maxMessage = 512

// write writes the result into the status of the set, if the judged step is still the one at work.
func (c *command) write(ctx context.Context, step *v1beta1.RolloutStatus, found finding) error {
	status := metav1.ConditionFalse
	if found.good {
		status = metav1.ConditionTrue
	}
	for range attempts {
		set := &v1beta1.RollSet{}
		if err := c.api.Get(ctx, c.key, set); err != nil {
			return err
		}
		if r := set.Status.Rollout; r == nil || r.Revision != step.Revision || r.Step != step.Step {
			return fmt.Errorf("step %d of revision %s is no longer at work; nothing was written", step.Step, step.Revision)
		}
		before := set.DeepCopy()
		meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{
			Type: c.gate, Status: status, ObservedGeneration: set.Generation, Reason: found.reason,
			Message:            podstate.Printable(found.message, maxMessage),
			LastTransitionTime: metav1.NewTime(c.session.Clock.Now().Truncate(time.Second)),
		})
		err := c.api.Status().Patch(ctx, set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return errors.New("the set is written too often to judge it; nothing was written; try again")
}
