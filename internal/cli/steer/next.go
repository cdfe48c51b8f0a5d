// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// rollsNext returns what follows from a new template: how many pods move, how many at a time, and what keeps them from
// moving.
func rollsNext(spec *v1alpha1.RollSetSpec) string {
	limits, err := snapshot.ResolveLimits(spec)
	if err != nil {
		return ""
	}
	rolling := spec.UpdateStrategy.RollingUpdate
	move := limits.Replicas - limits.Partition
	switch {
	case spec.UpdateStrategy.Type == v1alpha1.OnDeleteStrategy:
		return "updateStrategy OnDelete: a pod is updated when it is deleted"
	case spec.UpdateStrategy.Type == v1alpha1.RecreateStrategy:
		return fmt.Sprintf("updateStrategy Recreate: all %s go before any new one comes", pods(limits.Replicas))
	case rolling.Paused:
		return "the rollout is paused: no pod moves until it is resumed"
	case move == 0:
		return "the partition keeps all pods where they are"
	}
	text := fmt.Sprintf("%s move, at most %d unavailable at a time", pods(move), limits.MaxUnavailable)
	if limits.MaxSurge > 0 {
		text += fmt.Sprintf(", with up to %d more meanwhile", limits.MaxSurge)
	}
	if limits.Partition > 0 {
		text += fmt.Sprintf("; the partition keeps %d at the current revision", limits.Partition)
	}
	return text
}

// pods formats a number of pods.
func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
