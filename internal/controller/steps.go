// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"rollset.dev/rollset/api/v1beta1"
)

// tellStep records an event when a step has begun, waits for a gate or a person, or has failed, once the status says so.
func (r *reporter) tellStep(s *step, now *v1beta1.RolloutStatus) {
	before := s.Set.Status.Rollout
	if now == nil || now.Step == 0 || equality.Semantic.DeepEqual(before, now) {
		return
	}
	begins := before == nil || before.Revision != now.Revision || before.Step != now.Step
	switch {
	case begins && now.Step > now.Steps:
		r.events.Eventf(s.Set, nil, corev1.EventTypeNormal, v1beta1.ReasonStepsDone, "Step",
			"All %d steps of revision %s are done; all other pods follow", now.Steps, now.Revision)
	case begins:
		r.events.Eventf(s.Set, nil, corev1.EventTypeNormal, v1beta1.ReasonStepStarted, "Step",
			"Step %d of %d of revision %s begins: %d of %d pods", now.Step, now.Steps, now.Revision,
			s.snap.Limits.Steps[now.Step-1], s.snap.Limits.Replicas)
	case before.Phase == now.Phase:
	case now.Phase == v1beta1.RolloutGated:
		r.events.Eventf(s.Set, nil, corev1.EventTypeNormal, v1beta1.ReasonAwaitingGate, "Step",
			"Step %d of %d of revision %s waits for gate %s", now.Step, now.Steps, now.Revision, strings.Join(s.snap.Rollout.Closed, ", "))
	case now.Phase == v1beta1.RolloutPaused && !s.snap.Paused():
		r.events.Eventf(s.Set, nil, corev1.EventTypeNormal, v1beta1.ReasonAwaitingPromotion, "Step",
			"Step %d of %d of revision %s waits for annotation %s=%s/%d", now.Step, now.Steps, now.Revision,
			v1beta1.PromoteAnnotation, now.Revision, now.Step)
	case now.Phase == v1beta1.RolloutFailed:
		r.events.Eventf(s.Set, nil, corev1.EventTypeWarning, v1beta1.ReasonStepFailed, "Step",
			"Step %d of %d of revision %s failed: %s", now.Step, now.Steps, now.Revision, s.snap.Rollout.Failure)
	}
}
