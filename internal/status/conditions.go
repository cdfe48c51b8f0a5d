// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
)

const (
	// maxMessage is the largest number of bytes of a condition's message.
	maxMessage = 1024
	// maxConditions is how many conditions the API allows a status to have.
	maxConditions = 16
)

// conditions makes the conditions.
type conditions struct{ *facts }

// conditions returns the set's own conditions, followed by those of other clients, which only they remove.
func (f conditions) conditions(t timing, b blocker) []metav1.Condition {
	var list []metav1.Condition
	set := func(name string, v verdict, message string) {
		list = append(list, f.condition(name, v, message))
	}
	progress := progressing(f).verdict(t)
	message := progressing(f).message(progress, b)
	stalled, stalledMessage := f.stalled(t, message)

	set(v1beta1.ConditionReady, f.ready(progress, stalled), message)
	available, availableMessage := f.available()
	set(v1beta1.ConditionAvailable, available, availableMessage)
	set(v1beta1.ConditionProgressing, progress, message)
	if f.reason != progress.reason || !f.sameRollout() {
		f.date(&list[len(list)-1])
	}
	if failure := f.failure(); failure != nil {
		set(v1beta1.ConditionReplicaFailure, verdict{metav1.ConditionTrue, failure.Reason}, failure.Message)
	}
	if stalled != "" {
		set(v1beta1.ConditionStalled, verdict{metav1.ConditionTrue, stalled}, stalledMessage)
	}
	if v, message := f.disruption(); v != (verdict{}) {
		set(v1beta1.ConditionDisruptionReady, v, message)
	}
	list = append(list, f.foreign()...)
	return list[:min(len(list), maxConditions)]
}

func ours(name string) bool {
	return slices.Contains([]string{
		v1beta1.ConditionReady, v1beta1.ConditionAvailable, v1beta1.ConditionProgressing, v1beta1.ConditionReplicaFailure, v1beta1.ConditionStalled,
		v1beta1.ConditionDisruptionReady,
	}, name)
}

// condition returns a condition. Its date is that of the last change of its status. That of Progressing is later if the
// rollout changed since, because the clock of the deadline is rebuilt from it after a restart.
func (f conditions) condition(name string, v verdict, message string) metav1.Condition {
	c := metav1.Condition{
		Type:               name,
		Status:             v.status,
		ObservedGeneration: f.generation(),
		Reason:             v.reason,
		Message:            podstate.Printable(message, maxMessage),
	}
	f.date(&c)
	if before := find(f.previous.Conditions, name); before != nil && before.Status == v.status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	return c
}

// date sets the date of a condition to now, in whole seconds, as the API keeps it.
func (f conditions) date(c *metav1.Condition) {
	c.LastTransitionTime = metav1.NewTime(f.snap.Now.Truncate(time.Second))
}

// find returns the condition of a type; nil if there is none.
func find(conditions []metav1.Condition, name string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == name {
			return &conditions[i]
		}
	}
	return nil
}

// foreign returns the conditions that other clients write. The gates of a step come first, because their number is limited.
// Gates that are reset are Unknown.
func (f conditions) foreign() []metav1.Condition {
	var list []metav1.Condition
	r := &f.snap.Rollout
	for _, name := range r.Gates {
		if slices.Contains(r.Begins, name) {
			message := fmt.Sprintf("step %d of %d of revision %s waits for it", r.Next.Step, r.Next.Steps, r.Next.Revision)
			list = append(list, f.condition(name, verdict{metav1.ConditionUnknown, v1beta1.ReasonStepStarted}, message))
		} else if c := find(f.previous.Conditions, name); c != nil {
			list = append(list, *c)
		}
	}
	for i := range f.previous.Conditions {
		if c := f.previous.Conditions[i]; !ours(c.Type) && !slices.Contains(r.Gates, c.Type) {
			list = append(list, c)
		}
	}
	return list
}

// ready returns the condition Ready. It is not True after a rollback, because the set does not run what the spec asks for.
func (f conditions) ready(progress verdict, stalled string) verdict {
	switch {
	case f.settled && (f.empty() || !f.snap.Rejected && !f.stepping()):
		return verdict{metav1.ConditionTrue, progress.reason}
	case stalled != "":
		return verdict{metav1.ConditionFalse, stalled}
	case progress.reason == v1beta1.ReasonComplete, progress.reason == v1beta1.ReasonPartitionReached:
		return verdict{metav1.ConditionFalse, v1beta1.ReasonPodsUnavailable}
	default:
		return verdict{metav1.ConditionFalse, progress.reason}
	}
}

// available returns the condition Available, with its message.
func (f conditions) available() (v verdict, message string) {
	if f.in.Invalid != "" {
		return verdict{metav1.ConditionUnknown, v1beta1.ReasonInvalidSpec}, f.in.Invalid
	}
	if f.empty() {
		return verdict{metav1.ConditionTrue, v1beta1.ReasonMinimumPodsAvailable}, "no pod is needed"
	}
	limits := f.snap.Limits
	need := max(1, limits.MinAvailable())
	message = share(f.serving, limits.Replicas, "available") + fmt.Sprintf(", at least %d needed", need)
	if f.serving >= need {
		return verdict{metav1.ConditionTrue, v1beta1.ReasonMinimumPodsAvailable}, message
	}
	return verdict{metav1.ConditionFalse, v1beta1.ReasonTooFewPodsAvailable}, message
}

// stalled returns why nothing will move until a user acts, with a message; empty if something may move. A set that is about
// to be rolled back will move.
func (f conditions) stalled(t timing, progress string) (reason, message string) {
	switch {
	case f.in.Invalid != "":
		return v1beta1.ReasonInvalidSpec, f.in.Invalid
	case f.in.Deleting, f.empty():
		return "", ""
	case f.refusesTemplate():
		return v1beta1.ReasonInvalidTemplate, f.failure().Message
	case f.rollbackDone():
		return v1beta1.ReasonRolledBack, progress
	case f.stepHolds():
		return v1beta1.ReasonStepFailed, progress
	case t.exceeded && f.failure() != nil && !f.failed():
		return f.failure().Reason, f.failure().Message // its words say more than that time has passed
	case t.exceeded && (!f.canRollBack() || !f.failed()):
		return v1beta1.ReasonProgressDeadlineExceeded, progress
	default:
		return "", ""
	}
}
