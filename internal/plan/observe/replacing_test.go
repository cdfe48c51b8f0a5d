// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
)

// TestReplacing lets a manager start while a pod that a pause replaces terminates. It remembers the pod until its successor is there.
func TestReplacing(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.Replicas, set.Spec.PodIdentity = new(int32(1)), v1beta1.OrdinalIdentity
	set.Spec.UpdateStrategy.RollingUpdate.Paused = true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web-0", UID: "0", DeletionTimestamp: &metav1.Time{Time: time.Unix(999, 0)},
		Labels: map[string]string{"app": "web", v1beta1.RevisionLabel: "web-2", v1beta1.SpecifiedDeleteLabel: "true"},
	}}
	successor := pod.DeepCopy()
	successor.UID, successor.DeletionTimestamp = "1", nil
	delete(successor.Labels, v1beta1.SpecifiedDeleteLabel)
	memory := &Memory{}
	for i, look := range []struct {
		pods []*corev1.Pod
		want string
	}{{[]*corev1.Pod{pod}, "web-2"}, {nil, "web-2"}, {[]*corev1.Pod{successor}, ""}, {nil, ""}} {
		if got := lookAgain(memory, set, look.pods...).Replacing["0"]; got != look.want {
			t.Errorf("look %d: the successor comes at %q, want %q", i, got, look.want)
		}
	}
}

// TestPlannedMoves remembers the pod of a planned move until its successor is there, and not a pod that a user deletes.
func TestPlannedMoves(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	set.Spec.Replicas, set.Spec.PodIdentity = new(int32(2)), v1beta1.OrdinalIdentity
	pod := func(name, uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(uid), Labels: map[string]string{"app": "web", v1beta1.RevisionLabel: "web-1"},
		}}
	}
	moved, lost := pod("web-0", "0"), pod("web-1", "1")
	memory := &Memory{}
	look := func(step string, want map[string]string, unseen int, pods ...*corev1.Pod) {
		snap := lookAgain(memory, set, pods...)
		if !maps.Equal(snap.Replacing, want) || snap.Unseen != unseen {
			t.Errorf("%s: replacing %v and %d unseen, want %v and %d", step, snap.Replacing, snap.Unseen, want, unseen)
		}
	}
	look("at first", nil, 0, moved, lost)
	memory.Planned(&action.Plan{Actions: []action.Action{action.Delete{Pod: moved, Cause: action.Move, To: "web-2"}}})
	look("when both are gone", map[string]string{"0": "web-2"}, 0)
	look("when one is back", nil, 0, pod("web-0", "2"))
	memory.Planned(&action.Plan{Actions: []action.Action{action.Delete{Pod: pod("web-9", "9"), Cause: action.Move, To: "web-2"}}})
	look("when it is lost", nil, 0)
	memory = &Memory{}
	set.Status.ObservedGeneration, set.Status.ReachedReplicas = 1, 2
	look("after a restart", nil, 2)
	look("until it is back", nil, 1, pod("web-0", "2"))
	look("and for ever", nil, 1)
}
