// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// TestStepEvents follows a rollout through its steps: users get one event when a step begins, waits for a person or program,
// or fails.
func TestStepEvents(t *testing.T) {
	t.Parallel()
	recorder := events.NewFakeRecorder(10)
	r := &reporter{events: recorder}
	set := &v1beta1.RollSet{}
	snap := &snapshot.Set{Settings: snapshot.Settings{
		Spec: &set.Spec, Numbers: snapshot.Numbers{Limits: snapshot.Limits{Replicas: 8, Steps: []int{1, 2}}},
	}}
	snap.Rollout.Closed, snap.Rollout.Failure = []string{"Errors", "Smoke"}, "gate Errors is False: 3%"
	at := func(step int32, phase v1beta1.RolloutPhase) *v1beta1.RolloutStatus {
		return &v1beta1.RolloutStatus{Revision: "web-b", Step: step, Steps: 2, Phase: phase}
	}
	for _, next := range []struct {
		status *v1beta1.RolloutStatus
		want   string
	}{
		{at(1, v1beta1.RolloutRolling), "Normal StepStarted Step 1 of 2 of revision web-b begins: 1 of 8 pods"},
		{at(1, v1beta1.RolloutSoaking), ""},
		{at(1, v1beta1.RolloutGated), "Normal AwaitingGate Step 1 of 2 of revision web-b waits for gate Errors, Smoke"},
		{at(1, v1beta1.RolloutGated), ""},
		{at(1, v1beta1.RolloutFailed), "Warning StepFailed Step 1 of 2 of revision web-b failed: gate Errors is False: 3%"},
		{at(1, v1beta1.RolloutPaused), "Normal AwaitingPromotion Step 1 of 2 of revision web-b waits for annotation apps.rollset.dev/promote=web-b/1"},
		{at(2, v1beta1.RolloutRolling), "Normal StepStarted Step 2 of 2 of revision web-b begins: 2 of 8 pods"},
		{at(3, v1beta1.RolloutRolling), "Normal StepsDone All 2 steps of revision web-b are done; all other pods follow"},
		{at(0, v1beta1.RolloutFailed), ""}, // the verdict is told of with the revision
		{nil, ""},
	} {
		r.tellStep(&step{view: &view{Objects: snapshot.Objects{Set: set}}, snap: snap}, next.status)
		set.Status.Rollout = next.status
		got := ""
		select {
		case got = <-recorder.Events:
		default:
		}
		if diff := cmp.Diff(next.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", next.status, diff)
		}
	}
}
