// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
	"rollset.dev/rollset/internal/status"
)

func TestNeedsWriteAndUrgent(t *testing.T) {
	t.Parallel()
	condition := func(s *v1beta1.RollSetStatus, name string) *metav1.Condition {
		for i := range s.Conditions {
			if s.Conditions[i].Type == name {
				return &s.Conditions[i]
			}
		}
		s.Conditions = append(s.Conditions, metav1.Condition{Type: name})
		return &s.Conditions[len(s.Conditions)-1]
	}
	for name, tc := range map[string]struct {
		edit                   func(*v1beta1.RollSetStatus)
		wantsWrite, wantsHurry bool
	}{
		"nothing changed": {edit: func(*v1beta1.RollSetStatus) {}},
		"nil is empty":    {edit: func(s *v1beta1.RollSetStatus) { s.VolumeClaims = []v1beta1.VolumeClaimStatus{} }},
		"the same time, spelt otherwise": {edit: func(s *v1beta1.RollSetStatus) {
			c := condition(s, v1beta1.ConditionReady)
			c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.In(time.FixedZone("", 3600)))
		}},
		"a counter":             {edit: func(s *v1beta1.RollSetStatus) { s.ReadyReplicas++ }, wantsWrite: true},
		"a message":             {edit: func(s *v1beta1.RollSetStatus) { condition(s, v1beta1.ConditionReady).Message = "x" }, wantsWrite: true},
		"a failure":             {edit: func(s *v1beta1.RollSetStatus) { condition(s, v1beta1.ConditionReplicaFailure).Status = "True" }, wantsWrite: true},
		"no longer ready":       {edit: func(s *v1beta1.RollSetStatus) { condition(s, v1beta1.ConditionReady).Status = "False" }, wantsWrite: true, wantsHurry: true},
		"no longer available":   {edit: func(s *v1beta1.RollSetStatus) { condition(s, v1beta1.ConditionAvailable).Status = "False" }, wantsWrite: true, wantsHurry: true},
		"stalled":               {edit: func(s *v1beta1.RollSetStatus) { condition(s, v1beta1.ConditionStalled).Status = "True" }, wantsWrite: true, wantsHurry: true},
		"another generation":    {edit: func(s *v1beta1.RollSetStatus) { s.ObservedGeneration++ }, wantsWrite: true, wantsHurry: true},
		"a rollout is complete": {edit: func(s *v1beta1.RollSetStatus) { s.CurrentRevision = "v3" }, wantsWrite: true, wantsHurry: true},
		"a new revision":        {edit: func(s *v1beta1.RollSetStatus) { s.UpdateRevision = "v3" }, wantsWrite: true, wantsHurry: true},
		"a collision":           {edit: func(s *v1beta1.RollSetStatus) { s.CollisionCount = new(int32(1)) }, wantsWrite: true, wantsHurry: true},
		"the selector":          {edit: func(s *v1beta1.RollSetStatus) { s.LabelSelector = "app=web" }, wantsWrite: true, wantsHurry: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			previous := status.Compute(input(snapshottest.Parse("random R=1 v2", "a:v2+"))).Status
			next := previous.DeepCopy()
			tc.edit(next)
			if got := status.NeedsWrite(&previous, next); got != tc.wantsWrite {
				t.Errorf("NeedsWrite = %t, want %t", got, tc.wantsWrite)
			}
			if got := status.Urgent(&previous, next); got != tc.wantsHurry {
				t.Errorf("Urgent = %t, want %t", got, tc.wantsHurry)
			}
		})
	}
	first := status.Compute(input(snapshottest.Parse("random R=1 v2", ""))).Status
	if !status.Urgent(&v1beta1.RollSetStatus{ObservedGeneration: -1}, &first) {
		t.Error("the first status must not wait")
	}
}

// kstatus returns the status of an object for tools that follow the kstatus convention: first the generation, then
// conditions that are abnormal when True, then Ready.
func kstatus(s *v1beta1.RollSetStatus, generation int64) string {
	is := func(name string) metav1.ConditionStatus {
		for _, c := range s.Conditions {
			if c.Type == name {
				return c.Status
			}
		}
		return ""
	}
	switch {
	case s.ObservedGeneration != generation:
		return "InProgress"
	case is("Reconciling") == metav1.ConditionTrue:
		return "InProgress"
	case is("Stalled") == metav1.ConditionTrue:
		return "Failed"
	case is("Ready") == metav1.ConditionFalse, is("Ready") == metav1.ConditionUnknown:
		return "InProgress"
	default:
		return "Current"
	}
}

func TestKstatus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config, state string
		edit          func(*status.Input)
		want          string
	}{
		"no pod yet":                     {config: "random R=1 v2", want: "InProgress"},
		"complete":                       {config: "random R=1 v2", state: "a:v2+", want: "Current"},
		"the next generation":            {config: "random R=1 v2", state: "a:v2+", edit: func(in *status.Input) { in.Generation = 0 }, want: "InProgress"},
		"in mid-rollout":                 {config: "random R=2 v1>v2", state: "a:v1+ b:v2+", want: "InProgress"},
		"as far as the partition allows": {config: "random R=2 p=1 v1>v2", state: "a:v1+ b:v2+", want: "Current"},
		"as far as the pause allows":     {config: "random R=2 paused v1>v2", state: "a:v1+ b:v2+", want: "Current"},
		"paused with a broken pod":       {config: "random R=2 paused v1>v2", state: "a:v1+ b:v2.", want: "InProgress"},
		"the quota is used up":           {config: "random R=2 refused v2", state: "a:v2+", want: "InProgress"},
		"rolled back":                    {config: "random R=1 rejected v1>v2", state: "a:v1+", want: "Failed"},
		"on the way back":                {config: "random R=1 rejected v1>v2", state: "a:v2+", want: "InProgress"},
		"a spec that makes no sense":     {config: "random R=1 v2", state: "a:v2+", edit: func(in *status.Input) { in.Invalid = "no" }, want: "Failed"},
		"a template that is refused": {config: "random R=1 v1>v2", state: "a:v1+", want: "Failed", edit: func(in *status.Input) {
			in.Failure = &status.Failure{Reason: v1beta1.ReasonInvalidTemplate, Message: "no"}
		}},
		"past the deadline": {config: "random R=2 v1>v2", state: "a:v1+ b:v2.", want: "Failed", edit: func(in *status.Input) {
			in.Previous = before(v1beta1.ReasonProgressDeadlineExceeded)
		}},
		"past the deadline, to be rolled back": {config: "random R=2 v1>v2", state: "a:v1+ b:v2.", want: "InProgress", edit: func(in *status.Input) {
			in.Snap.Spec.UpdateStrategy.RollingUpdate.OnDeadlineExceeded = v1beta1.RollbackOnDeadline
			in.Previous = before(v1beta1.ReasonProgressDeadlineExceeded)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(snapshottest.Parse(tc.config, tc.state))
			in.Plan = plan.Next(in.Snap)
			if tc.edit != nil {
				tc.edit(&in)
			}
			s := status.Compute(in).Status
			if got := kstatus(&s, 1); got != tc.want {
				t.Errorf("kstatus = %s, want %s\n%s", got, tc.want, show(&s))
			}
		})
	}
}

func BenchmarkCompute(b *testing.B) {
	for name, n := range map[string]int{"10": 10, "1000": 1000, "10000": 10_000} {
		b.Run(name, func(b *testing.B) {
			snap := snapshottest.Parse("random v1>v2", "")
			snap.Limits.Replicas = n
			one := snapshottest.Parse("random R=1 v1", "a:v1+").Replicas[0]
			for i := range n {
				r := one
				if i%2 == 0 {
					r.Revision = "v2"
				}
				snap.Replicas = append(snap.Replicas, r)
			}
			in := status.Input{Snap: snap, Generation: 1}
			b.ReportAllocs()
			for b.Loop() {
				status.Compute(in)
			}
		})
	}
}
