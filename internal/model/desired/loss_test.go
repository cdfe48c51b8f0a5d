// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// TestLeastFirst compares two pods that are equal but for one change, which makes the first the lesser loss. All that the
// order compares after that speaks for the second.
func TestLeastFirst(t *testing.T) {
	t.Parallel()
	now := time.Unix(100_000, 0)
	pod := func(id string) snapshot.Replica {
		return snapshot.Replica{Content: snapshot.Content{
			Identity: snapshot.Identity{ID: id}, Pod: &corev1.Pod{}, Scheduled: true, Ready: true, Phase: corev1.PodRunning, Node: "full",
			ReadySince: now.Add(-time.Hour), Created: 10,
		}}
	}
	tests := []struct {
		name   string
		change func(lesser, other *snapshot.Replica)
	}{
		{"not scheduled", func(lesser, _ *snapshot.Replica) { lesser.Scheduled = false }},
		{"pending", func(lesser, other *snapshot.Replica) {
			lesser.Phase, other.Phase = corev1.PodPending, corev1.PodUnknown
		}},
		{"of unknown phase", func(lesser, _ *snapshot.Replica) { lesser.Phase = corev1.PodUnknown }},
		{"not ready", func(lesser, _ *snapshot.Replica) { lesser.Ready = false }},
		{"on a node that leaves", func(lesser, _ *snapshot.Replica) { lesser.Leaving = "node full is cordoned" }},
		{"cheaper", func(lesser, _ *snapshot.Replica) { lesser.DeletionCost = -1 }},
		{"on a node with more pods", func(_, other *snapshot.Replica) { other.Node = "empty" }},
		{"ready for half as long", func(lesser, _ *snapshot.Replica) { lesser.ReadySince = now.Add(-30 * time.Minute) }},
		{"restarted more often", func(lesser, _ *snapshot.Replica) { lesser.Restarts = 1 }},
		{"newer", func(lesser, _ *snapshot.Replica) { lesser.Created = 11 }},
		{"first by name", func(*snapshot.Replica, *snapshot.Replica) {}},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			snap := &snapshot.Set{Now: now, Pods: snapshot.Pods{Replicas: []snapshot.Replica{pod("a"), pod("b"), pod("c")}}}
			lesser, other := &snap.Replicas[0], &snap.Replicas[1]
			for _, later := range tests[i+1:] {
				later.change(other, lesser)
			}
			tt.change(lesser, other)
			pods := []*snapshot.Replica{other, lesser}
			desired.SortByLoss(snap, pods)
			if pods[0] != lesser {
				t.Errorf("%+v goes before %+v", *pods[0], *pods[1])
			}
		})
	}
}

// TestReadyForAboutAsLong lets pods that became ready in one go be compared by what comes after that.
func TestReadyForAboutAsLong(t *testing.T) {
	t.Parallel()
	now := time.Unix(100_000, 0)
	snap := &snapshot.Set{Now: now, Pods: snapshot.Pods{Replicas: []snapshot.Replica{
		{Content: snapshot.Content{Identity: snapshot.Identity{ID: "a"}, Pod: &corev1.Pod{}, Ready: true, ReadySince: now.Add(-1000 * time.Second)}},
		{Content: snapshot.Content{Identity: snapshot.Identity{ID: "b"}, Pod: &corev1.Pod{}, Ready: true, ReadySince: now.Add(-1020 * time.Second), Restarts: 1}},
	}}}
	pods := []*snapshot.Replica{&snap.Replicas[0], &snap.Replicas[1]}
	desired.SortByLoss(snap, pods)
	if pods[0].ID != "b" {
		t.Error("20 seconds of readiness count for more than a restart")
	}
}
