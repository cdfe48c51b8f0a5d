// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
)

// TestHome waits for a ready pod of another origin there until it is available, and where it is once it is updated in place.
func TestHome(t *testing.T) {
	t.Parallel()
	for updating, want := range map[bool]string{false: "a", true: "b"} {
		r := &snapshottest.Parse("ordinal R=1 soak=0 v1", "b/0:v1r").Replicas[0]
		origin := snapshot.Origin{Revision: "v1", Known: true, Domain: snapshot.Domain{Value: "a"}}
		r.Pod.Annotations = map[string]string{v1beta1.OriginAnnotation: origin.String(snapshottest.Zone)}
		r.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		r.Updating = updating
		if home, known, counts := r.Home(snapshottest.Zone); home.Value != want || !known || !counts {
			t.Errorf("updating %t: home is %v, %t, %t; want %s", updating, home, known, counts, want)
		}
	}
}

// TestOriginOf reads origins. One that speaks of other domains says only at which revision the pod was created.
func TestOriginOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]snapshot.Origin{
		"v1 zone=a":  {Revision: "v1", Known: true, Domain: snapshot.Domain{Value: "a"}},
		"v1 zone@p":  {Revision: "v1", Known: true, Domain: snapshot.Domain{Pod: "p"}},
		"v1 zone?":   {Revision: "v1"},
		"v1 +":       {Revision: "v1", Added: true},
		"v1 zone":    {},
		"v1 rack=a":  {},
		"v1 =a":      {},
		"v1 zones=a": {},
		"v1":         {},
		"":           {},
	} {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{v1beta1.OriginAnnotation: text}
		got, ok := snapshot.OriginOf(pod, "zone")
		if ok != (want.Revision != "") || ok && got != want {
			t.Errorf("%q: origin is %+v, %t", text, got, ok)
		}
	}
}

// TestOnItsWay counts the successor of a terminating pod for a minute, and no longer than the pod may take to end.
func TestOnItsWay(t *testing.T) {
	t.Parallel()
	now := time.Unix(100_000, 0)
	for _, tt := range []struct {
		deleted, grace, want time.Duration
	}{
		{0, 10 * time.Minute, time.Minute},
		{20 * time.Second, 10 * time.Minute, 40 * time.Second},
		{2 * time.Minute, 10 * time.Minute, 0},
		{0, 5 * time.Second, 15 * time.Second},
		{50 * time.Second, 5 * time.Second, 0},
	} {
		end := metav1.NewTime(now.Add(tt.grace - tt.deleted))
		r := snapshot.Replica{Content: snapshot.Content{Pod: &corev1.Pod{}, Terminating: true}}
		r.Pod.DeletionTimestamp, r.Pod.DeletionGracePeriodSeconds = &end, new(int64(tt.grace/time.Second))
		if got := r.OnItsWay(now); got != tt.want {
			t.Errorf("deleted %s ago with a grace period of %s: on its way for %s, want %s", tt.deleted, tt.grace, got, tt.want)
		}
	}
}
