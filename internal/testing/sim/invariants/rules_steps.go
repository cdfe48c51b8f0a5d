// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"rollset.dev/rollset/api/v1beta1"
)

// stepsInTurn checks that a rollout takes its steps in order: each begins when the one before it has ended, and none
// begins twice.
func stepsInTurn(v *verdict) string {
	is, ok := v.New.(*v1beta1.RollSet)
	was, existed := v.Old.(*v1beta1.RollSet)
	if !ok || !existed {
		return ""
	}
	before, after := was.Status.Rollout, is.Status.Rollout
	switch {
	case before == nil || after == nil || before.Revision != after.Revision:
		return "" // another rollout, or the status was lost
	case after.Step == 0: // the rejection may have been taken back before this status was written
		if before.Step != 0 && !v.world.Rejected(was) {
			return "the steps are given up, and nobody gave the revision up"
		}
		return ""
	case before.Step == 0 && after.Step != 1:
		return "a revision that is tried again does not begin at step 1"
	case before.Step == 0:
		return ""
	case before.Step == after.Step, edited(before, is):
		return ""
	case after.Step < before.Step:
		return fmt.Sprintf("step %d after step %d", after.Step, before.Step)
	case was.Annotations[v1beta1.PromoteAnnotation] == before.Revision+"/all" && after.Step == after.Steps+1:
		return ""
	case after.Step != before.Step+1:
		return fmt.Sprintf("step %d after step %d", after.Step, before.Step)
	default:
		return stepEnded(was, v.now)
	}
}

// readyWhenDone checks that a set is not Ready during a step, nor while pods wait to be moved after the last one.
func readyWhenDone(v *verdict) string {
	is, ok := v.New.(*v1beta1.RollSet)
	if !ok || is.Status.Rollout == nil || !meta.IsStatusConditionTrue(is.Status.Conditions, "Ready") {
		return ""
	}
	r, l := is.Status.Rollout, limitsOf(&v.set.Spec)
	switch {
	case *v.set.Spec.Replicas == 0:
		return "a set without replicas is at a step"
	case r.Step <= r.Steps && (v.set.Spec.UpdateStrategy.RollingUpdate.Paused || r.Phase == v1beta1.RolloutRolling && l.Partition > l.Replicas-sizesOf(&v.set.Spec)[r.Step-1]):
		return "" // it waits
	case r.Step <= r.Steps:
		return fmt.Sprintf("the set is Ready at step %d of %d", r.Step, r.Steps)
	case int(is.Status.UpdatedReplicas) < l.Replicas-l.Partition && rolls(v.set):
		return fmt.Sprintf("the set is Ready with %d pods updated behind the last step", is.Status.UpdatedReplicas)
	default:
		return ""
	}
}

// readyInPlace checks that a set is not Ready while it has a pod whose ordinal is not in use.
func readyInPlace(v *verdict) string {
	is, ok := v.New.(*v1beta1.RollSet)
	if !ok || !meta.IsStatusConditionTrue(is.Status.Conditions, "Ready") {
		return ""
	}
	for _, pod := range v.cached() {
		if IsActive(pod) && v.outside(pod) {
			return fmt.Sprintf("the set is Ready and has %s, whose ordinal is not in use", pod.Name)
		}
	}
	return ""
}

// edited reports whether the size of the current step has changed, so that the step is looked up again.
func edited(before *v1beta1.RolloutStatus, set *v1beta1.RollSet) bool {
	steps := set.Spec.UpdateStrategy.RollingUpdate.Steps
	if int(before.Steps) != len(steps) {
		return true
	}
	return before.Step >= 1 && int(before.Step) <= len(steps) && (before.Updated == nil || *before.Updated != steps[before.Step-1].Updated)
}

// stepEnded returns why the current step of a status has not ended yet.
func stepEnded(set *v1beta1.RollSet, now time.Time) string {
	r := set.Status.Rollout
	step := &set.Spec.UpdateStrategy.RollingUpdate.Steps[r.Step-1]
	for _, g := range step.Gates {
		if !meta.IsStatusConditionTrue(set.Status.Conditions, g.ConditionType) {
			return fmt.Sprintf("step %d ends, and gate %s is not True", r.Step, g.ConditionType)
		}
	}
	promoted := set.Annotations[v1beta1.PromoteAnnotation] == r.Revision+"/"+strconv.Itoa(int(r.Step)) &&
		set.Annotations[v1beta1.PromoteAnnotation] != r.IgnoredPromotion
	if step.Pause && !promoted {
		return fmt.Sprintf("step %d ends, and nobody promoted it", r.Step)
	}
	if step.SoakSeconds > 0 && now.Sub(r.Since.Time) < time.Duration(step.SoakSeconds)*time.Second {
		return fmt.Sprintf("step %d ends, and it has not soaked", r.Step)
	}
	return ""
}

// soaksInSilence checks that the status is not written while a step soaks and nothing else changes.
func soaksInSilence(v *verdict) string {
	is, ok := v.New.(*v1beta1.RollSet)
	was, existed := v.Old.(*v1beta1.RollSet)
	if !ok || !existed || is.Status.Rollout == nil || was.Status.Rollout == nil {
		return ""
	}
	if r := is.Status.Rollout; r.Phase != v1beta1.RolloutSoaking || !r.Since.Equal(was.Status.Rollout.Since) {
		return ""
	}
	before, after := was.Status.DeepCopy(), is.Status.DeepCopy()
	if before.Rollout.Phase != after.Rollout.Phase || before.ObservedGeneration != after.ObservedGeneration {
		return ""
	}
	before.Conditions, after.Conditions = nil, nil
	before.Rollout, after.Rollout = nil, nil
	sameWords := len(was.Status.Conditions) == len(is.Status.Conditions)
	for _, c := range is.Status.Conditions {
		old := meta.FindStatusCondition(was.Status.Conditions, c.Type)
		sameWords = sameWords && old != nil && old.Message == c.Message && old.Status == c.Status
	}
	if !sameWords || !equality.Semantic.DeepEqual(before, after) || edited(was.Status.Rollout, is) {
		return ""
	}
	return "a status is written that says nothing new of a step that soaks"
}
