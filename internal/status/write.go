// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// NeedsWrite reports whether two statuses differ in meaning.
func NeedsWrite(previous, next *v1beta1.RollSetStatus) bool {
	return !equality.Semantic.DeepEqual(previous, next)
}

// Urgent reports whether a status must be written at once: a user may be waiting for it, or a later reconcile builds on it.
// Other statuses may be delayed while a set changes fast.
func Urgent(previous, next *v1beta1.RollSetStatus) bool {
	if previous.ObservedGeneration != next.ObservedGeneration ||
		previous.CurrentRevision != next.CurrentRevision ||
		previous.UpdateRevision != next.UpdateRevision ||
		previous.LabelSelector != next.LabelSelector ||
		!sameStep(previous.Rollout, next.Rollout) ||
		!equality.Semantic.DeepEqual(previous.CollisionCount, next.CollisionCount) {
		return true
	}
	for _, name := range []string{v1beta1.ConditionReady, v1beta1.ConditionAvailable, v1beta1.ConditionStalled} {
		if statusOf(previous, name) != statusOf(next, name) {
			return true
		}
	}
	return false
}

// statusOf returns the status of a condition; empty if there is none.
func statusOf(s *v1beta1.RollSetStatus, name string) metav1.ConditionStatus {
	if c := find(s.Conditions, name); c != nil {
		return c.Status
	}
	return ""
}
