// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/status"
)

// overdue returns a set whose rollout makes no progress: it looks the same after an hour.
func overdue() status.Input {
	in := inState("random R=2 mu=1 v1>v2", "a:v1+ b:v2.")
	in.Snap.Spec.ProgressDeadlineSeconds = new(int32(600))
	before := status.Compute(in)
	in.Previous, in.Progress = &before.Status, before.Progress
	in.Snap.Now = in.Snap.Now.Add(time.Hour)
	return in
}

// four is a set of four pods that moves to another revision.
const four = "ordinal R=4 mu=2 v1>v2"

// judged returns the gates of a step, judged.
func judged(verdict metav1.ConditionStatus) map[string]metav1.ConditionStatus {
	return map[string]metav1.ConditionStatus{"Errors": verdict}
}

// TestHealth asks Argo CD and kstatus about sets in every state, with the status that the controller writes.
func TestHealth(t *testing.T) {
	t.Parallel()
	failed := func(reason string) status.Input {
		in := inState("random R=2 v1", "a:v1+")
		in.Failure = &status.Failure{Reason: reason, Message: "no"}
		return in
	}
	invalid := inState("random R=2 v1", "a:v1+ b:v1+")
	invalid.Invalid = "spec.replicas: no number"
	tests := map[string]struct {
		set     *unstructured.Unstructured
		argo    string
		kstatus kstatus.Status
	}{
		"new": {
			set: toUnstructured(t, &v1beta1.RollSet{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1},
				Status:     v1beta1.RollSetStatus{ObservedGeneration: -1}, // the default in the CRD
			}),
			argo: "Progressing", kstatus: kstatus.InProgressStatus,
		},
		"starting":                       {set: object(t, inState("random R=2 v1", "a:v1.")), argo: "Progressing", kstatus: kstatus.InProgressStatus},
		"complete":                       {set: object(t, inState("random R=2 v1", "a:v1+ b:v1+")), argo: "Healthy", kstatus: kstatus.CurrentStatus},
		"without pods":                   {set: object(t, inState("random R=0 v1", "")), argo: "Healthy", kstatus: kstatus.CurrentStatus},
		"a pod lost":                     {set: object(t, inState("random R=2 v1", "a:v1+ b:v1.")), argo: "Progressing", kstatus: kstatus.InProgressStatus},
		"rolling":                        {set: object(t, inState("random R=2 v1>v2", "a:v1+ b:v2.")), argo: "Progressing", kstatus: kstatus.InProgressStatus},
		"at the partition":               {set: object(t, inState("ordinal R=2 p=1 v1>v2", "0:v1+ 1:v2+")), argo: "Healthy", kstatus: kstatus.CurrentStatus},
		"paused":                         {set: object(t, inState("random R=2 paused v1>v2", "a:v1+ b:v2+")), argo: "Suspended", kstatus: kstatus.CurrentStatus},
		"paused, with a pod lost":        {set: object(t, inState("random R=2 paused v1>v2", "a:v1+ b:v2.")), argo: "Suspended", kstatus: kstatus.InProgressStatus},
		"paused, with nothing to update": {set: object(t, inState("random R=2 paused v1", "a:v1+ b:v1+")), argo: "Healthy", kstatus: kstatus.CurrentStatus},
		"out of quota":                   {set: object(t, failed(v1beta1.ReasonFailedCreate)), argo: "Degraded", kstatus: kstatus.InProgressStatus},
		"an invalid template":            {set: object(t, failed(v1beta1.ReasonInvalidTemplate)), argo: "Degraded", kstatus: kstatus.FailedStatus},
		"an invalid spec":                {set: object(t, invalid), argo: "Degraded", kstatus: kstatus.FailedStatus},
		"past the deadline":              {set: object(t, overdue()), argo: "Degraded", kstatus: kstatus.FailedStatus},
		"in a step":                      {set: object(t, inStep(t, four, "0:v1+ 1:v1+ 2:v1+ 3:v2.", nil)), argo: "Progressing", kstatus: kstatus.InProgressStatus},
		"soaking":                        {set: object(t, inStep(t, four, "0:v1+ 1:v1+ 2:v1+ 3:v2+", nil)), argo: "Progressing", kstatus: kstatus.InProgressStatus},
		"waiting for a gate": {
			set:  object(t, inStep(t, four, "0:v1+ 1:v1+ 2:v2+ 3:v2+", nil)),
			argo: "Progressing", kstatus: kstatus.InProgressStatus,
		},
		"waiting for a person": {
			set:  object(t, inStep(t, four, "0:v1+ 1:v2+ 2:v2+ 3:v2+", nil)),
			argo: "Suspended", kstatus: kstatus.InProgressStatus,
		},
		"waiting for a person, with a pod lost": {
			set:  object(t, inStep(t, four, "0:v1. 1:v2+ 2:v2+ 3:v2+", nil)),
			argo: "Suspended", kstatus: kstatus.InProgressStatus,
		},
		"paused in a step, as in any pause": { // no step is at work in a pause
			set:  object(t, inStep(t, four, "0:v1+ 1:v1+ 2:v2+ 3:v2+", judged("True"), "paused")),
			argo: "Suspended", kstatus: kstatus.CurrentStatus,
		},
		"a step that failed": {
			set:  object(t, inStep(t, four, "0:v1+ 1:v1+ 2:v2+ 3:v2+", judged("False"))),
			argo: "Degraded", kstatus: kstatus.FailedStatus,
		},
		"an aborted rollout": {
			set:  object(t, inStep(t, four+" rejected", "0:v1+ 1:v1+ 2:v1+ 3:v1+", nil)),
			argo: "Degraded", kstatus: kstatus.FailedStatus,
		},
		"all steps done": {
			set:  object(t, inStep(t, four, "0:v2. 1:v2+ 2:v2+ 3:v2+", nil)),
			argo: "Progressing", kstatus: kstatus.InProgressStatus,
		},
		"rolled back": {set: object(t, inState("random R=2 rejected v1>v2", "a:v1+ b:v1+")), argo: "Degraded", kstatus: kstatus.FailedStatus},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect := func(argo string, want kstatus.Status) {
				t.Helper()
				if got, message := argoHealth(t, tt.set); got != argo || message == "" {
					t.Errorf("Argo CD says %s (%q), want %s", got, message, argo)
				}
				if result, err := kstatus.Compute(tt.set); err != nil || result.Status != want {
					t.Errorf("kstatus says %+v, %v, want %s", result, err, want)
				}
			}
			expect(tt.argo, tt.kstatus)
			tt.set.SetGeneration(tt.set.GetGeneration() + 1) // the controller has not seen this generation
			expect("Progressing", kstatus.InProgressStatus)
			tt.set.SetDeletionTimestamp(&metav1.Time{Time: snapshottest.Now()})
			if result, err := kstatus.Compute(tt.set); err != nil || result.Status != kstatus.TerminatingStatus {
				t.Errorf("kstatus says %+v, %v of a set that is being deleted", result, err)
			}
		})
	}
}

// argoHealth runs the script as Argo CD does: in an interpreter with the object as the global obj.
func argoHealth(t *testing.T, set *unstructured.Unstructured) (health, message string) {
	t.Helper()
	state := newState(t)
	state.SetGlobal("obj", toLua(state, set.Object))
	if err := state.DoString(string(read(t, "config/argocd/health.lua"))); err != nil {
		t.Fatal(err)
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %v", state.Get(-1))
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}
