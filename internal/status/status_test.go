// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/plan"
	"rollset.dev/rollset/internal/status"
)

// input returns the input of a reconcile that makes this observation, plans for it and is refused nothing.
func input(snap *snapshot.Set) status.Input {
	return status.Input{Snap: snap, Generation: 1, Plan: plan.Next(snap)}
}

// before returns a status with a reason of Progressing, as the last reconcile of the same generation wrote it.
func before(reason string) *v1beta1.RollSetStatus {
	return &v1beta1.RollSetStatus{
		ObservedGeneration: 1,
		UpdateRevision:     "v2",
		Conditions: []metav1.Condition{{
			Type: v1beta1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: reason,
			LastTransitionTime: metav1.NewTime(snapshottest.Now().Add(-time.Minute)),
		}},
	}
}

// show lists the conditions, one on each line.
func show(s *v1beta1.RollSetStatus) string {
	var b strings.Builder
	for _, c := range s.Conditions {
		fmt.Fprintf(&b, "%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}

// text returns lines without the indentation of the source.
func text(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config, state string
		previous      *v1beta1.RollSetStatus
		edit          func(*status.Input)
		want          string
		wantBlocking  status.Blocking
	}{
		"the first revision, no pod yet": {
			config: "random R=3 v2", state: "",
			want: `
				Ready=False NewRevision: 0 of 3 pods available
				Available=False TooFewPodsAvailable: 0 of 3 pods available, at least 2 needed
				Progressing=True NewRevision: 0 of 3 pods available`,
		},
		"complete, with claims that are not as their template wants them": {
			config: "ordinal R=1 v2", state: "0:v2+",
			edit: func(in *status.Input) {
				in.VolumeClaims = []v1beta1.VolumeClaimStatus{{Name: "data", Claims: 1, Message: "data-web-0: it cannot grow"}}
			},
			want: `
				Ready=True Complete: 1 of 1 pods updated and available; claim data-web-0: it cannot grow
				Available=True MinimumPodsAvailable: 1 of 1 pods available, at least 1 needed
				Progressing=True Complete: 1 of 1 pods updated and available; claim data-web-0: it cannot grow`,
		},
		"the first pods start": {
			config: "random R=3 v2", state: "a:v2+ b:v2. c:v2.", previous: before(v1beta1.ReasonNewRevision),
			want: `
				Ready=False Scaling: 1 of 3 pods available; waiting for web-b: not started yet on node node-b
				Available=False TooFewPodsAvailable: 1 of 3 pods available, at least 2 needed
				Progressing=True Scaling: 1 of 3 pods available; waiting for web-b: not started yet on node node-b`,
			wantBlocking: status.BlockedByPod,
		},
		"a pod that runs may wait for one that does not": {
			config: "random R=3 v2", state: "a:v2. b:v2. c:v2+", previous: before(v1beta1.ReasonScaling),
			edit: func(in *status.Input) {
				running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
				in.Snap.Replicas[0].Pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: running}}
			},
			want: `
				Ready=False Scaling: 1 of 3 pods available; waiting for web-b: not started yet on node node-b
				Available=False TooFewPodsAvailable: 1 of 3 pods available, at least 2 needed
				Progressing=True Scaling: 1 of 3 pods available; waiting for web-b: not started yet on node node-b`,
			wantBlocking: status.BlockedByPod,
		},
		"the limit on creation is named with the pod that it waits for": {
			config: "random R=3 v2", state: "a:v2.", previous: before(v1beta1.ReasonNewRevision),
			edit: func(in *status.Input) { in.Plan = plan.Next(snapshottest.Parse("random R=3 scalemu=1 v2", "a:v2.")) },
			want: `
				Ready=False Scaling: 0 of 3 pods available; waiting for web-qkmvw and 1 more: scaleStrategy.maxUnavailable: 1 pods may be unavailable while pods are created; web-a: not started yet on node node-a
				Available=False TooFewPodsAvailable: 0 of 3 pods available, at least 2 needed
				Progressing=True Scaling: 0 of 3 pods available; waiting for web-qkmvw and 1 more: scaleStrategy.maxUnavailable: 1 pods may be unavailable while pods are created; web-a: not started yet on node node-a`,
			wantBlocking: status.Blocking(action.HeldByLimit),
		},
		"all is there": {
			config: "random R=3 v2", state: "a:v2+ b:v2+ c:v2+", previous: before(v1beta1.ReasonScaling),
			want: `
				Ready=True Complete: 3 of 3 pods updated and available
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=True Complete: 3 of 3 pods updated and available`,
		},
		"none is wanted": {
			config: "random R=0 v2", state: "",
			want: `
				Ready=True NoReplicas: scaled to 0
				Available=True MinimumPodsAvailable: no pod is needed
				Progressing=True NoReplicas: scaled to 0`,
		},
		"none is wanted, in a rollout": {
			config: "random R=0 v1>v2", state: "a:v2x",
			want: `
				Ready=True NoReplicas: scaled to 0
				Available=True MinimumPodsAvailable: no pod is needed
				Progressing=True NoReplicas: scaled to 0`,
		},
		"none is wanted, of a revision that was given up": {
			config: "random R=0 rejected v1>v2", state: "",
			want: `
				Ready=True NoReplicas: scaled to 0; revision v2 missed its deadline and is rolled back
				Available=True MinimumPodsAvailable: no pod is needed
				Progressing=True NoReplicas: scaled to 0; revision v2 missed its deadline and is rolled back`,
		},
		"none is wanted, and one is left": {
			config: "random R=0 v1>v2", state: "a:v2.",
			want: `
				Ready=False Scaling: 1 pods, 0 wanted; waiting for web-a: not started yet on node node-a
				Available=True MinimumPodsAvailable: no pod is needed
				Progressing=True Scaling: 1 pods, 0 wanted; waiting for web-a: not started yet on node node-a`,
			wantBlocking: status.BlockedByPod,
		},
		"a restart in a finished set": {
			config: "random R=3 v2", state: "a:v2+ b:v2. c:v2+", previous: before(v1beta1.ReasonComplete),
			want: `
				Ready=False PodsUnavailable: 2 of 3 pods available; waiting for web-b: not started yet on node node-b
				Available=True MinimumPodsAvailable: 2 of 3 pods available, at least 2 needed
				Progressing=True Complete: 2 of 3 pods available; waiting for web-b: not started yet on node node-b`,
			wantBlocking: status.BlockedByPod,
		},
		"a pod of a finished set is lost": {
			config: "random R=3 v2", state: "a:v2+ b:v2! c:v2+", previous: before(v1beta1.ReasonComplete),
			want: `
				Ready=False PodsUnavailable: 2 of 3 pods available; waiting for web-b: Failed
				Available=True MinimumPodsAvailable: 2 of 3 pods available, at least 2 needed
				Progressing=True Complete: 2 of 3 pods available; waiting for web-b: Failed`,
			wantBlocking: status.BlockedByEnd,
		},
		"scaled up": {
			config: "random R=5 v2", state: "a:v2+ b:v2+ c:v2+", previous: before(v1beta1.ReasonComplete),
			edit: func(in *status.Input) { in.Generation = 2 },
			want: `
				Ready=False Scaling: 3 of 5 pods available
				Available=False TooFewPodsAvailable: 3 of 5 pods available, at least 4 needed
				Progressing=True Scaling: 3 of 5 pods available`,
		},
		"scaled down, in order": {
			config: "ordered R=1 v2", state: "0:v2+ 1:v2+ 2:v2x", previous: before(v1beta1.ReasonScaling),
			want: `
				Ready=False Scaling: 2 pods, 1 wanted; waiting for web-2: Terminating on node node-2
				Available=True MinimumPodsAvailable: 1 of 1 pods available, at least 1 needed
				Progressing=True Scaling: 2 pods, 1 wanted; waiting for web-2: Terminating on node node-2`,
			wantBlocking: "terminating",
		},
		"scaled down to the last pod on its way out": {
			config: "ordered R=1 v2", state: "0:v2+ 1:v2x", previous: before(v1beta1.ReasonScaling),
			want: `
				Ready=True Complete: 1 of 1 pods updated and available
				Available=True MinimumPodsAvailable: 1 of 1 pods available, at least 1 needed
				Progressing=True Complete: 1 of 1 pods updated and available`,
		},
		"a new revision, nothing moved": {
			config: "random R=3 v1>v2", state: "a:v1+ b:v1+ c:v1+",
			edit: func(in *status.Input) { in.Plan = plan.Next(snapshottest.Parse("random R=3 v2", "")) },
			want: `
				Ready=False NewRevision: 0 of 3 pods updated
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=True NewRevision: 0 of 3 pods updated`,
		},
		"in mid-rollout": {
			config: "random R=3 v1>v2", state: "a:v1+ b:v1+ c:v2.",
			want: `
				Ready=False RollingUpdate: 1 of 3 pods updated; waiting for web-c: not started yet on node node-c
				Available=True MinimumPodsAvailable: 2 of 3 pods available, at least 2 needed
				Progressing=True RollingUpdate: 1 of 3 pods updated; waiting for web-c: not started yet on node node-c`,
			wantBlocking: status.BlockedByPod,
		},
		"all updated, the last one not ready for long enough": {
			config: "random R=3 v1>v2", state: "a:v2+ b:v2+ c:v2r",
			edit: func(in *status.Input) { in.Snap.Spec.MinReadySeconds = 30 },
			want: `
				Ready=False RollingUpdate: 3 of 3 pods updated, 2 available; waiting for web-c: ready for less than minReadySeconds
				Available=True MinimumPodsAvailable: 2 of 3 pods available, at least 2 needed
				Progressing=True RollingUpdate: 3 of 3 pods updated, 2 available; waiting for web-c: ready for less than minReadySeconds`,
			wantBlocking: status.BlockedByMinReady,
		},
		"all updated, something else keeps one from being available": {
			config: "random R=1 v1>v2", state: "a:v2r",
			want: `
				Ready=False RollingUpdate: 1 of 1 pods updated, 0 available; waiting for web-a: ready, but not available yet
				Available=False TooFewPodsAvailable: 0 of 1 pods available, at least 1 needed
				Progressing=True RollingUpdate: 1 of 1 pods updated, 0 available; waiting for web-a: ready, but not available yet`,
			wantBlocking: status.BlockedByMinReady,
		},
		"not ready comes before not available": {
			config: "random R=3 mu=3 v1>v2", state: "a:v2r b:v2. c:v2+",
			want: `
				Ready=False RollingUpdate: 3 of 3 pods updated, 1 available; waiting for web-b: not started yet on node node-b
				Available=True MinimumPodsAvailable: 1 of 3 pods available, at least 1 needed
				Progressing=True RollingUpdate: 3 of 3 pods updated, 1 available; waiting for web-b: not started yet on node node-b`,
			wantBlocking: status.BlockedByPod,
		},
		"an old pod does not go": {
			config: "random R=3 v1>v2", state: "a:v2+ b:v2+ c:v2+ d:v1x",
			want: `
				Ready=True Complete: 3 of 3 pods updated and available
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=True Complete: 3 of 3 pods updated and available`,
		},
		"the partition is reached": {
			config: "ordinal R=3 p=2 v1>v2", state: "0:v1+ 1:v1+ 2:v2+",
			want: `
				Ready=True PartitionReached: 1 of 3 pods updated, as the partition wants it
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=True PartitionReached: 1 of 3 pods updated, as the partition wants it`,
		},
		"one available pod has an ordinal that is not in use": {
			config: "ordinal R=3 v1", state: "0:v1+ 1:v1+ 7:v1+",
			want: `
				Ready=False Scaling: 2 of 3 pods available; waiting for web-7: its ordinal is out of range; it must be deleted before another pod is created
				Available=True MinimumPodsAvailable: 2 of 3 pods available, at least 2 needed
				Progressing=True Scaling: 2 of 3 pods available; waiting for web-7: its ordinal is out of range; it must be deleted before another pod is created`,
			wantBlocking: "order",
		},
		"only pods that a user named are left to move": {
			config: "random R=3 v1>v2", state: "a:v1+@ b:v1+@ c:v2+",
			want: `
				Ready=False RollingUpdate: 1 of 3 pods updated; waiting for web-a: 1 unavailable at revision v2, no more are moved to it
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=True RollingUpdate: 1 of 3 pods updated; waiting for web-a: 1 unavailable at revision v2, no more are moved to it`,
			wantBlocking: "guard",
		},
		"at the partition an old pod breaks": {
			config: "ordinal R=3 p=2 v1>v2", state: "0:v1+ 1:v1. 2:v2+",
			want: `
				Ready=False PodsUnavailable: 1 of 3 pods updated, as the partition wants it; waiting for web-1: not started yet on node node-1; the partition keeps it at revision v1
				Available=True MinimumPodsAvailable: 2 of 3 pods available, at least 2 needed
				Progressing=True PartitionReached: 1 of 3 pods updated, as the partition wants it; waiting for web-1: not started yet on node node-1; the partition keeps it at revision v1`,
			wantBlocking: status.BlockedByPod,
		},
		"the partition was raised": {
			config: "ordinal R=3 p=3 v1>v2", state: "0:v1+ 1:v2+ 2:v1.",
			want: `
				Ready=False RollingUpdate: 2 of 3 pods moved back; waiting for web-2: not started yet on node node-2
				Available=True MinimumPodsAvailable: 2 of 3 pods available, at least 2 needed
				Progressing=True RollingUpdate: 2 of 3 pods moved back; waiting for web-2: not started yet on node node-2`,
			wantBlocking: status.BlockedByPod,
		},
		"paused": {
			config: "random R=3 paused v1>v2", state: "a:v1+ b:v1+ c:v2+",
			want: `
				Ready=True Paused: paused; 1 of 3 pods updated
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=Unknown Paused: paused; 1 of 3 pods updated`,
			wantBlocking: "pause",
		},
		"paused before the surge is taken back": {
			config: "random R=2 surge=1 paused v1>v2", state: "a:v1+ b:v1+ c:v2+",
			want: `
				Ready=False Paused: paused; 1 of 3 pods updated
				Available=True MinimumPodsAvailable: 3 pods available, 2 wanted, at least 1 needed
				Progressing=Unknown Paused: paused; 1 of 3 pods updated`,
		},
		"paused beside surge for a pod that a user named": {
			config: "random R=2 surge=1 paused v1>v2", state: "a:v1+@ b:v1+ c:v1+",
			want: `
				Ready=False Paused: paused; 0 of 3 pods updated
				Available=True MinimumPodsAvailable: 3 pods available, 2 wanted, at least 1 needed
				Progressing=Unknown Paused: paused; 0 of 3 pods updated`,
			wantBlocking: "pause",
		},
		"OnDelete": {
			config: "random R=2 ondelete v1>v2", state: "a:v1+ b:v2+",
			want: `
				Ready=True RollingUpdate: 1 of 2 pods updated; waiting for web-a: updateStrategy OnDelete: it is updated when it is deleted
				Available=True MinimumPodsAvailable: 2 of 2 pods available, at least 1 needed
				Progressing=True RollingUpdate: 1 of 2 pods updated; waiting for web-a: updateStrategy OnDelete: it is updated when it is deleted`,
			wantBlocking: "on-delete",
		},
		"being rolled back": {
			config: "random R=3 rejected v1>v2", state: "a:v1+ b:v1+ c:v2.",
			edit: func(in *status.Input) { in.Plan = plan.Next(snapshottest.Parse("random R=3 v2", "")) },
			want: `
				Ready=False RolledBack: revision v2 missed its deadline and is rolled back; 2 of 3 pods at revision v1
				Available=True MinimumPodsAvailable: 2 of 3 pods available, at least 2 needed
				Progressing=False RolledBack: revision v2 missed its deadline and is rolled back; 2 of 3 pods at revision v1`,
		},
		"rolled back": {
			config: "random R=3 rejected v1>v2", state: "a:v1+ b:v1+ c:v1+",
			want: `
				Ready=False RolledBack: revision v2 missed its deadline and is rolled back; 3 of 3 pods at revision v1
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=False RolledBack: revision v2 missed its deadline and is rolled back; 3 of 3 pods at revision v1
				Stalled=True RolledBack: revision v2 missed its deadline and is rolled back; 3 of 3 pods at revision v1`,
			wantBlocking: status.BlockedByRejection,
		},
		"the quota is used up": {
			config: "random R=3 refused v2", state: "a:v2+ b:v2+", previous: before(v1beta1.ReasonScaling),
			edit: func(in *status.Input) {
				in.Failure = &status.Failure{Reason: v1beta1.ReasonFailedCreate, Message: "exceeded quota: pods"}
			},
			want: `
				Ready=False Scaling: 2 of 3 pods available; failed: exceeded quota: pods
				Available=True MinimumPodsAvailable: 2 of 3 pods available, at least 2 needed
				Progressing=True Scaling: 2 of 3 pods available; failed: exceeded quota: pods
				ReplicaFailure=True FailedCreate: exceeded quota: pods`,
			wantBlocking: status.BlockedByRefusal,
		},
		"the API server refuses the template": {
			config: "random R=3 v1>v2", state: "a:v1+ b:v1+ c:v1+",
			edit: func(in *status.Input) {
				in.Snap.Preflights = map[string]snapshot.Preflight{"v2": {Refusal: "spec.containers[0].image: Required value"}}
			},
			want: `
				Ready=False InvalidTemplate: 0 of 3 pods updated; the API server refuses: pods of revision v2: spec.containers[0].image: Required value
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=False InvalidTemplate: 0 of 3 pods updated; the API server refuses: pods of revision v2: spec.containers[0].image: Required value
				ReplicaFailure=True InvalidTemplate: pods of revision v2: spec.containers[0].image: Required value
				Stalled=True InvalidTemplate: pods of revision v2: spec.containers[0].image: Required value`,
			wantBlocking: status.BlockedByRefusal,
		},
		"the API server refused the template of a set that is being deleted": {
			config: "random R=3 v1>v2", state: "a:v1+ b:v1+ c:v1+",
			edit: func(in *status.Input) {
				in.Deleting = true
				in.Snap.Preflights = map[string]snapshot.Preflight{"v2": {Refusal: "spec.containers[0].image: Required value"}}
			},
			want: `
				Ready=False Deleting: the set is being deleted; 3 pods are left
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=True Deleting: the set is being deleted; 3 pods are left`,
		},
		"the API server refuses the revision to go back to": {
			config: "random R=3 p=3 v1>v2", state: "a:v1+ b:v2+ c:v1+",
			edit: func(in *status.Input) {
				in.Snap.Preflights = map[string]snapshot.Preflight{"v1": {Refusal: "denied by policy"}}
			},
			want: `
				Ready=False InvalidTemplate: 2 of 3 pods moved back; the API server refuses: pods of revision v1: denied by policy
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=False InvalidTemplate: 2 of 3 pods moved back; the API server refuses: pods of revision v1: denied by policy
				ReplicaFailure=True InvalidTemplate: pods of revision v1: denied by policy
				Stalled=True InvalidTemplate: pods of revision v1: denied by policy`,
			wantBlocking: status.BlockedByRefusal,
		},
		"the API server cannot judge the template": {
			config: "random R=3 v1>v2", state: "a:v1+ b:v1+ c:v1+",
			edit: func(in *status.Input) {
				in.Snap.Preflights = map[string]snapshot.Preflight{"v2": {Refusal: "webhook timed out", Failed: true}}
				in.Plan = action.Plan{}
				in.Plan.Hold(action.HeldByPreflight, "web-a", "the API server cannot judge pods of revision v2: webhook timed out")
			},
			want: `
				Ready=False NewRevision: 0 of 3 pods updated; waiting for web-a: the API server cannot judge pods of revision v2: webhook timed out
				Available=True MinimumPodsAvailable: 3 of 3 pods available, at least 2 needed
				Progressing=True NewRevision: 0 of 3 pods updated; waiting for web-a: the API server cannot judge pods of revision v2: webhook timed out`,
			wantBlocking: "preflight",
		},
		"a pod has waited for its hook for too long": {
			config: "random R=2 v1", state: "a:v1+ b:v1+",
			edit: func(in *status.Input) {
				r := &in.Snap.Replicas[1]
				r.Available, r.Updating, r.State, r.Hook, r.Overdue = false, true, v1beta1.LifecycleUpdated, "lifecycle hook inPlaceUpdate has waited", true
				in.Plan = action.Plan{}
				in.Plan.Hold(action.HeldByTimeout, "web-b", "lifecycle hook inPlaceUpdate has waited")
			},
			want: `
				Ready=False Scaling: 1 of 2 pods available; waiting for web-b: lifecycle hook inPlaceUpdate has waited
				Available=True MinimumPodsAvailable: 1 of 2 pods available, at least 1 needed
				Progressing=True Scaling: 1 of 2 pods available; waiting for web-b: lifecycle hook inPlaceUpdate has waited`,
			wantBlocking: "hook-timeout",
		},
		"pods went on without their hooks": {
			config: "random R=2 v1", state: "a:v1+ b:v1+",
			edit: func(in *status.Input) {
				for i := range in.Snap.Replicas {
					in.Snap.Replicas[i].Passed = snapshot.Passed{Hook: "preNormal", Seconds: 60, Why: "label example.com/hook=on is missing"}
				}
			},
			want: `
				Ready=True Complete: 2 of 2 pods updated and available; web-a and 1 more went on without lifecycle hook preNormal, whose limit of 60 seconds has passed
				Available=True MinimumPodsAvailable: 2 of 2 pods available, at least 1 needed
				Progressing=True Complete: 2 of 2 pods updated and available; web-a and 1 more went on without lifecycle hook preNormal, whose limit of 60 seconds has passed`,
		},
		"Recreate waits for a pod that does not go": {
			config: "random R=2 recreate v1>v2", state: "a:v1x",
			want: `
				Ready=False NewRevision: 0 of 2 pods updated; waiting for web-a: Terminating on node node-a; updateStrategy Recreate: no new pod before the last at revision v1 is gone
				Available=False TooFewPodsAvailable: 0 of 2 pods available, at least 1 needed
				Progressing=True NewRevision: 0 of 2 pods updated; waiting for web-a: Terminating on node node-a; updateStrategy Recreate: no new pod before the last at revision v1 is gone`,
			wantBlocking: "old-pods",
		},
		"a pod on its way out has spent the budget": {
			config: "ordinal R=3 v1>v2", state: "0:v1+ 1:v1+ 2:v1x", previous: before(v1beta1.ReasonRollingUpdate),
			want: `
				Ready=False RollingUpdate: 0 of 3 pods updated; waiting for web-2: Terminating on node node-2
				Available=True MinimumPodsAvailable: 2 of 3 pods available, at least 2 needed
				Progressing=True RollingUpdate: 0 of 3 pods updated; waiting for web-2: Terminating on node node-2`,
			wantBlocking: status.BlockedByTermination,
		},
		"a claim is in the way": {
			config: "ordinal R=2 v2", state: "0:v2+", previous: before(v1beta1.ReasonScaling),
			edit: func(in *status.Input) {
				in.Snap.Blocked = map[string]snapshot.Block{"1": {Claim: true, Reason: "claim data-web-1 belongs to another set"}}
				in.Plan = plan.Next(in.Snap)
			},
			want: `
				Ready=False Scaling: 1 of 2 pods available; waiting for web-1: claim data-web-1 belongs to another set
				Available=True MinimumPodsAvailable: 1 of 2 pods available, at least 1 needed
				Progressing=True Scaling: 1 of 2 pods available; waiting for web-1: claim data-web-1 belongs to another set
				ReplicaFailure=True ClaimConflict: web-1: claim data-web-1 belongs to another set`,
			wantBlocking: status.BlockedByRefusal,
		},
		"a name is taken": {
			config: "ordinal R=2 v2", state: "0:v2+", previous: before(v1beta1.ReasonScaling),
			edit: func(in *status.Input) {
				in.Snap.Blocked = map[string]snapshot.Block{"1": {Reason: "the name is taken by a pod of another owner"}}
				in.Plan = plan.Next(in.Snap)
			},
			want: `
				Ready=False Scaling: 1 of 2 pods available; waiting for web-1: the name is taken by a pod of another owner
				Available=True MinimumPodsAvailable: 1 of 2 pods available, at least 1 needed
				Progressing=True Scaling: 1 of 2 pods available; waiting for web-1: the name is taken by a pod of another owner
				ReplicaFailure=True NameConflict: web-1: the name is taken by a pod of another owner`,
			wantBlocking: status.BlockedByRefusal,
		},
		"a delete is refused": {
			config: "random R=1 v2", state: "a:v2+ b:v2+", previous: before(v1beta1.ReasonScaling),
			edit: func(in *status.Input) {
				in.Failure = &status.Failure{Reason: v1beta1.ReasonFailedDelete, Message: "denied by \x1b[31mpolicy"}
			},
			want: `
				Ready=False Scaling: 2 pods, 1 wanted; failed: denied by policy
				Available=True MinimumPodsAvailable: 2 pods available, 1 wanted, at least 1 needed
				Progressing=True Scaling: 2 pods, 1 wanted; failed: denied by policy
				ReplicaFailure=True FailedDelete: denied by policy`,
			wantBlocking: status.BlockedByRefusal,
		},
		"a spec that makes no sense": {
			config: "random R=0 v2", state: "a:v2+",
			edit: func(in *status.Input) { in.Invalid, in.Plan.Actions = `spec.replicas: -1 is negative`, nil },
			want: `
				Ready=False InvalidSpec: the spec is invalid and nothing is done: spec.replicas: -1 is negative
				Available=Unknown InvalidSpec: spec.replicas: -1 is negative
				Progressing=False InvalidSpec: the spec is invalid and nothing is done: spec.replicas: -1 is negative
				Stalled=True InvalidSpec: spec.replicas: -1 is negative`,
			wantBlocking: status.BlockedByInvalidSpec,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(snapshottest.Parse(tc.config, tc.state))
			in.Previous = tc.previous
			if tc.edit != nil {
				tc.edit(&in)
			}
			got := status.Compute(in)
			if diff := cmp.Diff(text(tc.want), show(&got.Status)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if got.Blocking != tc.wantBlocking {
				t.Errorf("Blocking = %q, want %q", got.Blocking, tc.wantBlocking)
			}
		})
	}
}
