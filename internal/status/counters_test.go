// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/status"
)

func TestCounters(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config, state string
		edit          func(*status.Input)
		want          v1beta1.RollSetStatus
	}{
		"in mid-rollout; terminating and failed pods do not count": {
			config: "ordinal R=6 p=2 v1>v2", state: "0:v1+ 1:v1r 2:v2+ 3:v2. 4:v1x 5:v2! 6:-",
			want: v1beta1.RollSetStatus{
				Replicas: 4, ReadyReplicas: 3, AvailableReplicas: 2,
				CurrentReplicas: 2, UpdatedReplicas: 2, UpdatedReadyReplicas: 1, UpdatedAvailableReplicas: 1,
				ExpectedUpdatedReplicas: 4, CurrentRevision: "v1", UpdateRevision: "v2",
				Revisions: []v1beta1.RevisionStatus{
					{Name: "v1", Replicas: 2, AvailableReplicas: 1}, {Name: "v2", Replicas: 2, AvailableReplicas: 1},
				},
			},
		},
		"the last pod is available: the update revision becomes the current one": {
			config: "random R=2 v1>v2", state: "a:v2+ b:v2+",
			want: v1beta1.RollSetStatus{
				Replicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
				CurrentReplicas: 2, UpdatedReplicas: 2, UpdatedReadyReplicas: 2, UpdatedAvailableReplicas: 2,
				ExpectedUpdatedReplicas: 2, CurrentRevision: "v2", UpdateRevision: "v2",
				Revisions: []v1beta1.RevisionStatus{{Name: "v2", Replicas: 2, AvailableReplicas: 2}},
			},
		},
		"revisions stand in the order of their numbers, not of their names": {
			config: "random R=4 v3>v1", state: "a:v3+ b:v1+ c:z+ d:b+",
			edit: func(in *status.Input) { in.Snap.Current.Number, in.Snap.Update.Number = 3, 4 },
			want: v1beta1.RollSetStatus{
				Replicas: 4, ReadyReplicas: 4, AvailableReplicas: 4,
				CurrentReplicas: 1, UpdatedReplicas: 1, UpdatedReadyReplicas: 1, UpdatedAvailableReplicas: 1,
				ExpectedUpdatedReplicas: 4, CurrentRevision: "v3", UpdateRevision: "v1",
				Revisions: []v1beta1.RevisionStatus{
					{Name: "b", Replicas: 1, AvailableReplicas: 1},
					{Name: "z", Replicas: 1, AvailableReplicas: 1},
					{Name: "v3", Replicas: 1, AvailableReplicas: 1},
					{Name: "v1", Replicas: 1, AvailableReplicas: 1},
				},
			},
		},
		"what is only passed on": {
			config: "random R=0 v2",
			edit: func(in *status.Input) {
				in.CollisionCount = new(int32(3))
				in.VolumeClaims = []v1beta1.VolumeClaimStatus{{Name: "data", Claims: 2, MatchingClaims: 1}}
				in.Snap.Spec.Selector = &metav1.LabelSelector{
					MatchLabels:      map[string]string{"app": "web"},
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}},
				}
			},
			want: v1beta1.RollSetStatus{
				CurrentRevision: "v2", UpdateRevision: "v2", CollisionCount: new(int32(3)), LabelSelector: "app=web,tier",
				VolumeClaims: []v1beta1.VolumeClaimStatus{{Name: "data", Claims: 2, MatchingClaims: 1}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(snapshottest.Parse(tc.config, tc.state))
			if tc.edit != nil {
				tc.edit(&in)
			}
			tc.want.ObservedGeneration = 1
			got := status.Compute(in).Status
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(v1beta1.RollSetStatus{}, "Conditions")); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRevisionsAreBounded(t *testing.T) {
	t.Parallel()
	var state strings.Builder
	for i := range 150 {
		fmt.Fprintf(&state, "%d:stray%d+ ", i, i)
	}
	snap := snapshottest.Parse("random R=150 v1>v2", state.String()+"x:v1+ y:v2+")
	snap.Current.Number, snap.Update.Number = 1, 2
	got := status.Compute(input(snap)).Status.Revisions
	if len(got) != 100 || got[98].Name != "v1" || got[99].Name != "v2" {
		t.Errorf("%d revisions that end in %v; the API allows 100, and current and update are among them", len(got), got[max(0, len(got)-2):])
	}
}

func TestObservedGeneration(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		previous *v1beta1.RollSetStatus
		update   string
		want     int64
	}{
		"the first status":                      {update: "v2", want: 5},
		"the default of a new object":           {previous: &v1beta1.RollSetStatus{ObservedGeneration: -1}, update: "v2", want: 5},
		"a newer generation":                    {previous: &v1beta1.RollSetStatus{ObservedGeneration: 4}, update: "v2", want: 5},
		"a cache that is behind":                {previous: &v1beta1.RollSetStatus{ObservedGeneration: 6}, update: "v2", want: 6},
		"a generation that has no revision yet": {previous: &v1beta1.RollSetStatus{ObservedGeneration: 4, UpdateRevision: "v1"}, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(snapshottest.Parse("random R=1 v2", "a:v2+"))
			in.Generation, in.Previous, in.Snap.Update.Name = 5, tc.previous, tc.update
			got := status.Compute(in).Status
			if got.ObservedGeneration != tc.want {
				t.Errorf("observedGeneration = %d, want %d", got.ObservedGeneration, tc.want)
			}
			for _, c := range got.Conditions {
				if c.ObservedGeneration != tc.want {
					t.Errorf("%s has observedGeneration %d, want %d", c.Type, c.ObservedGeneration, tc.want)
				}
			}
			if tc.update == "" && got.UpdateRevision != "v1" {
				t.Errorf("updateRevision = %q, want it to stay v1", got.UpdateRevision)
			}
		})
	}
}

func TestTransitionTimes(t *testing.T) {
	t.Parallel()
	in := input(snapshottest.Parse("random R=1 v2", "a:v2."))
	first := status.Compute(in).Status

	in.Snap.Now = in.Snap.Now.Add(90*time.Second + 300*time.Millisecond)
	in.Previous, in.Snap.Replicas[0].Ready, in.Snap.Replicas[0].Available = &first, true, true
	second := status.Compute(in).Status
	for i, c := range second.Conditions {
		want := first.Conditions[i].LastTransitionTime.Time
		if c.Status != first.Conditions[i].Status || c.Type == v1beta1.ConditionProgressing && c.Reason != first.Conditions[i].Reason {
			want = snapshottest.Now().Add(90 * time.Second) // the API keeps whole seconds
		}
		if !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s, %s after %s, has changed at %v, want %v", c.Type, c.Status, first.Conditions[i].Status, c.LastTransitionTime, want)
		}
	}
}

func TestForeignConditions(t *testing.T) {
	t.Parallel()
	in := input(snapshottest.Parse("random R=1 v2", "a:v2+"))
	in.Previous = before(v1beta1.ReasonComplete)
	for i := range 20 {
		in.Previous.Conditions = append(in.Previous.Conditions, metav1.Condition{Type: fmt.Sprintf("example.com/%02d", i), Message: "theirs"})
	}
	in.Previous.Conditions = append(in.Previous.Conditions, metav1.Condition{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue})
	got := status.Compute(in).Status.Conditions
	if len(got) != 16 {
		t.Errorf("%d conditions, the API allows 16", len(got))
	}
	for _, c := range got[3:] {
		if c.Message != "theirs" {
			t.Errorf("condition %s: ours that no longer apply go, the others stay", c.Type)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	in := input(snapshottest.Parse("random R=2 v2", "a:v2+"))
	in.Failure = &status.Failure{Reason: v1beta1.ReasonFailedCreate, Message: strings.Repeat("denied \x1b[31m\n", 10_000)}
	for _, c := range status.Compute(in).Status.Conditions {
		if len(c.Message) > 1024 || strings.ContainsAny(c.Message, "\x1b\n") {
			t.Errorf("%s has a message of %d bytes: %.80q", c.Type, len(c.Message), c.Message)
		}
	}
}

// The status lists the images that pods run, and not those of the spec.
func TestImages(t *testing.T) {
	t.Parallel()
	template := func(images ...string) *corev1.PodTemplateSpec {
		template := &corev1.PodTemplateSpec{}
		for _, image := range images {
			template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Image: image})
		}
		return template
	}
	for state, want := range map[string]string{
		"":                  "",
		"a:v1+ b:v1+":       "web:1 proxy:1",
		"a:v1+ b:v2.":       "web:1 proxy:1 web:2",
		"a:v2+ b:v2+":       "web:2 proxy:1",
		"a:v1~ b:stray+":    "web:1 proxy:1",
		"a:v1x b:v2+ c:v2.": "web:2 proxy:1",
	} {
		snap := snapshottest.Parse("random R=2 v1>v2", state)
		for name, known := range map[string]*corev1.PodTemplateSpec{"v1": template("web:1", "proxy:1"), "v2": template("web:2", "proxy:1")} {
			snap.Known[name] = snapshot.Revision{Name: name, Template: known}
		}
		snap.Current.Number, snap.Update.Number = 1, 2
		if got := strings.Join(status.Compute(input(snap)).Status.Images, " "); got != want {
			t.Errorf("%q: %q, want %q", state, got, want)
		}
	}
	snap := snapshottest.Parse("random R=1 v1>v2", "a:v2+")
	snap.Known["v2"] = snapshot.Revision{Name: "v2", Template: template(strings.Repeat("long", 1000))}
	if got := status.Compute(input(snap)).Status.Images; len(got) != 1 || len(got[0]) > 1024 || !strings.HasPrefix(got[0], "longlong") {
		t.Errorf("an image of 4000 bytes is shown as %d images: %q", len(got), got)
	}
}
