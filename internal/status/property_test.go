// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
	"rollset.dev/rollset/internal/status"
)

// observation draws any state of a set.
func observation(t *rapid.T) *snapshot.Set {
	words := []string{
		rapid.SampledFrom([]string{"random", "ordinal", "ordered"}).Draw(t, "identity"),
		rapid.SampledFrom([]string{"v1>v2", "v2", "v2>v1"}).Draw(t, "revisions"),
		fmt.Sprintf("mu=%d", rapid.IntRange(0, 3).Draw(t, "mu")),
	}
	r := rapid.OneOf(rapid.IntRange(0, 5), rapid.Just(1<<31-1)).Draw(t, "R")
	words = append(words, fmt.Sprintf("R=%d p=%d", r, rapid.IntRange(0, min(r, 5)).Draw(t, "p")))
	for _, word := range []string{"paused", "refused", "rejected", "surge=1"} {
		if rapid.IntRange(0, 3).Draw(t, word) == 0 {
			words = append(words, word)
		}
	}
	words = append(words, rapid.SampledFrom([]string{"", "", "ondelete", "recreate"}).Draw(t, "strategy"))

	var pods []string
	for i := range rapid.IntRange(0, 6).Draw(t, "pods") {
		revision := rapid.SampledFrom([]string{"v1", "v2", "v2", "v0", ""}).Draw(t, "revision")
		mark := rapid.SampledFrom([]string{"+", "+", "+", "r", ".", "x", "X", "!"}).Draw(t, "mark")
		pods = append(pods, fmt.Sprintf("%d:%s%s", i, revision, mark))
	}
	snap := snapshottest.Parse(strings.Join(words, " "), strings.Join(pods, " "))
	snap.Spec.MinReadySeconds = int32(rapid.SampledFrom([]int{0, 30}).Draw(t, "minReadySeconds"))
	snap.Spec.UpdateStrategy.RollingUpdate.OnDeadlineExceeded = rapid.SampledFrom([]v1beta1.DeadlinePolicy{"", v1beta1.HoldOnDeadline, v1beta1.RollbackOnDeadline}).Draw(t, "policy")
	return snap
}

// past draws any earlier status.
func past(t *rapid.T) *v1beta1.RollSetStatus {
	if rapid.Bool().Draw(t, "first") {
		return nil
	}
	at := snapshottest.Now().Add(-time.Duration(rapid.IntRange(0, 2000).Draw(t, "ago")) * time.Second)
	s := &v1beta1.RollSetStatus{
		ObservedGeneration: rapid.Int64Range(-1, 3).Draw(t, "observedGeneration"),
		UpdateRevision:     rapid.SampledFrom([]string{"", "v1", "v2"}).Draw(t, "updateRevision"),
	}
	for _, c := range []struct {
		name    string
		reasons []string
	}{
		{v1beta1.ConditionReady, []string{v1beta1.ReasonComplete, v1beta1.ReasonScaling}},
		{v1beta1.ConditionProgressing, []string{
			v1beta1.ReasonNewRevision, v1beta1.ReasonRollingUpdate, v1beta1.ReasonScaling, v1beta1.ReasonPartitionReached,
			v1beta1.ReasonPaused, v1beta1.ReasonComplete, v1beta1.ReasonProgressDeadlineExceeded, v1beta1.ReasonRolledBack,
		}},
		{v1beta1.ConditionStalled, []string{v1beta1.ReasonRolledBack, v1beta1.ReasonInvalidSpec}},
	} {
		if rapid.Bool().Draw(t, c.name) {
			s.Conditions = append(s.Conditions, metav1.Condition{
				Type:               c.name,
				Status:             metav1.ConditionTrue,
				Reason:             rapid.SampledFrom(c.reasons).Draw(t, "reason"),
				LastTransitionTime: metav1.NewTime(at),
			})
			switch last := &s.Conditions[len(s.Conditions)-1]; last.Reason {
			case v1beta1.ReasonProgressDeadlineExceeded, v1beta1.ReasonRolledBack:
				last.Status = metav1.ConditionFalse
			case v1beta1.ReasonPaused:
				last.Status = metav1.ConditionUnknown
			}
		}
	}
	return s
}

// anyInput draws any input of a status.
func anyInput(t *rapid.T) status.Input {
	snap := observation(t)
	in := status.Input{Snap: snap, Generation: rapid.Int64Range(0, 3).Draw(t, "generation"), Previous: past(t), Plan: plan.Next(snap)}
	if rapid.IntRange(0, 4).Draw(t, "failed") == 0 {
		in.Failure = &status.Failure{Reason: v1beta1.ReasonFailedDelete, Message: rapid.String().Draw(t, "failure")}
	}
	if rapid.IntRange(0, 9).Draw(t, "invalid") == 0 {
		in.Invalid = "spec.replicas: -1 is negative"
	}
	return in
}

// TestStatusIsConsistent checks what clients rely on in every status (I12).
func TestStatusIsConsistent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		r := status.Compute(in)
		s := &r.Status
		if s.ReadyReplicas > s.Replicas || s.AvailableReplicas > s.ReadyReplicas {
			t.Errorf("available %d, ready %d, replicas %d", s.AvailableReplicas, s.ReadyReplicas, s.Replicas)
		}
		if s.UpdatedReadyReplicas > s.UpdatedReplicas || s.UpdatedAvailableReplicas > s.UpdatedReadyReplicas || s.UpdatedReplicas > s.Replicas {
			t.Errorf("updated: available %d, ready %d, replicas %d of %d",
				s.UpdatedAvailableReplicas, s.UpdatedReadyReplicas, s.UpdatedReplicas, s.Replicas)
		}
		if in.Previous != nil && s.ObservedGeneration < in.Previous.ObservedGeneration {
			t.Errorf("observedGeneration went from %d back to %d", in.Previous.ObservedGeneration, s.ObservedGeneration)
		}
		if s.ObservedGeneration < in.Generation {
			t.Errorf("observedGeneration is %d, generation %d", s.ObservedGeneration, in.Generation)
		}
		if r.RequeueAfter < 0 {
			t.Errorf("RequeueAfter is %v", r.RequeueAfter)
		}
		if r.Verdict != "" && (!r.DeadlineExceeded || stalled(s) != "" && in.Failure == nil && s.UpdateRevision == s.CurrentRevision) {
			t.Errorf("a verdict without a reason, or with nowhere to go")
		}
		checkConditions(t, s)
	})
}

// checkConditions checks what clients of the API rely on.
func checkConditions(t *rapid.T, s *v1beta1.RollSetStatus) {
	by := map[string]metav1.Condition{}
	for _, c := range s.Conditions {
		if _, twice := by[c.Type]; twice {
			t.Errorf("%s is there twice", c.Type)
		}
		by[c.Type] = c
		if c.Status == "" || c.Reason == "" || c.LastTransitionTime.IsZero() || c.ObservedGeneration != s.ObservedGeneration {
			t.Errorf("incomplete condition %+v", c)
		}
	}
	for _, name := range []string{v1beta1.ConditionReady, v1beta1.ConditionAvailable, v1beta1.ConditionProgressing} {
		if _, ok := by[name]; !ok {
			t.Errorf("no condition %s", name)
		}
	}
	if by[v1beta1.ConditionReady].Status == metav1.ConditionTrue && (s.AvailableReplicas != s.Replicas || stalled(s) == "True RolledBack") {
		t.Errorf("Ready with %d of %d pods available, Stalled %q", s.AvailableReplicas, s.Replicas, stalled(s))
	}
	if by[v1beta1.ConditionProgressing].Reason == v1beta1.ReasonProgressDeadlineExceeded && by[v1beta1.ConditionProgressing].Status != metav1.ConditionFalse {
		t.Errorf("the deadline is exceeded and Progressing is %s", by[v1beta1.ConditionProgressing].Status)
	}
}

// TestStatusIsStable computes a status twice from the same input, except for the status itself, as reconciles of a set do in
// which nothing happens. It does so with the controller's memory and without.
func TestStatusIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		first := status.Compute(in)
		if first.Verdict != "" {
			t.Skip("the revision would be rejected now")
		}
		if first.Status.CurrentRevision != in.Snap.Current.Name { // a completed revision is current in the next observation
			again := *in.Snap
			again.Current = again.Update
			in.Snap = &again
			in.Previous = &first.Status
			first = status.Compute(in)
		}
		in.Previous, in.Progress = &first.Status, first.Progress
		if diff := cmp.Diff(first.Status, status.Compute(in).Status); diff != "" {
			t.Errorf("nothing happened, and the status changed (-first +second):\n%s", diff)
		}
		in.Progress = status.Progress{}
		if diff := cmp.Diff(first.Status, status.Compute(in).Status); diff != "" {
			t.Errorf("the controller was restarted, and the status changed (-first +second):\n%s", diff)
		}
	})
}

func TestInputIsNotModified(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		before := struct {
			replicas []snapshot.Replica
			spec     *v1beta1.RollSetSpec
			previous *v1beta1.RollSetStatus
			plan     string
		}{nil, in.Snap.Spec.DeepCopy(), in.Previous.DeepCopy(), in.Plan.String()}
		for _, r := range in.Snap.Replicas {
			r.Pod = r.Pod.DeepCopy()
			before.replicas = append(before.replicas, r)
		}
		status.Compute(in)
		if diff := cmp.Diff(before.replicas, in.Snap.Replicas) + cmp.Diff(before.spec, in.Snap.Spec) +
			cmp.Diff(before.previous, in.Previous) + cmp.Diff(before.plan, in.Plan.String()); diff != "" {
			t.Errorf("the input changed (-before +after):\n%s", diff)
		}
	})
}
