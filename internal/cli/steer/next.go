// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/view"
	"rollset.dev/rollset/internal/model/snapshot"
)

// These stand for revisions that the controller has not made yet.
const (
	// aNewRevision is one that no pod is at.
	aNewRevision = "new"
	// someRevision may turn out to be one that pods are at.
	someRevision = ""
)

// rollsNext returns what follows if pods of a set are wanted at a revision: how many move, in how many steps, how many at a time, and
// what keeps them from moving.
func rollsNext(set *v1beta1.RollSet, target string, steps int) string {
	limits, err := snapshot.ResolveLimits(&set.Spec)
	if err != nil {
		return ""
	}
	wanted := limits.Replicas - limits.Partition
	switch {
	case limits.Replicas == 0:
		return "the set is scaled to 0: no pod moves"
	case set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteStrategy:
		return "updateStrategy OnDelete: a pod is updated when it is deleted"
	case set.Spec.UpdateStrategy.Type == v1beta1.RecreateStrategy:
		return fmt.Sprintf("updateStrategy Recreate: all %s go before any new one comes", pods(limits.Replicas))
	case set.Spec.UpdateStrategy.RollingUpdate.Paused:
		return "the rollout is paused: no pod moves until it is resumed"
	case wanted == 0:
		return "the partition keeps all pods where they are"
	}
	there := int(view.Counted(set, target).Replicas)
	text := move(wanted-there, limits, steps)
	switch {
	case there > 0 && there <= wanted:
		text = fmt.Sprintf("%d of %s there already; %s", there, pods(limits.Replicas), text)
	case there > wanted:
		text = move(there-wanted, limits, 0) + ", back to the current revision"
	case target == someRevision && len(set.Status.Revisions) > 1:
		text = "up to " + text
	}
	if limits.Partition > 0 {
		text += fmt.Sprintf("; the partition keeps %d at the current revision", limits.Partition)
	}
	return text
}

// move says how pods move.
func move(n int, limits snapshot.Limits, steps int) string {
	if n == 0 {
		return "no pod moves"
	}
	text := pods(n) + " move"
	if n == 1 {
		text += "s"
	}
	if steps > 0 {
		text += ", in steps"
	}
	text += fmt.Sprintf(", at most %d unavailable at a time", limits.MaxUnavailable)
	if limits.MaxSurge > 0 {
		text += fmt.Sprintf(", with up to %d more meanwhile", limits.MaxSurge)
	}
	return text
}

// stepsOf returns in how many steps a set moves to a new revision; 0 if it does so at once.
func stepsOf(set *v1beta1.RollSet) int { return len(set.Spec.UpdateStrategy.RollingUpdate.Steps) }

// pods formats a number of pods.
func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
