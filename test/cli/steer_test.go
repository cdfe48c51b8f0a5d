// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// image returns the image of a set's first container.
func image(set *v1beta1.RollSet) string { return set.Spec.Template.Spec.Containers[0].Image }

// contains fails unless a text has all the parts.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// TestRollout controls a rollout from its beginning to its end, and back.
func TestRollout(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	set := u.newSet(t, "web", nil)

	dry := u.run(t, "set", "image", "web", "app=nginx:1.29", "--dry-run=server")
	contains(t, dry, "rollset.apps.rollset.dev/web image updated (server dry run)", "3 pods move, at most 1 unavailable at a time")
	if now := u.get(t, "web"); now.Generation != set.Generation {
		t.Errorf("a dry run changed the set")
	}

	contains(t, u.run(t, "pause", "rls/web"), "web paused", "3 of 3 pods updated")
	contains(t, u.run(t, "pause", "web"), "unchanged: it is paused already")
	contains(t, u.run(t, "set", "image", "web", "*=nginx:1.29"), "web image updated", "paused: no pod moves until it is resumed")
	if got := image(u.get(t, "web")); got != "nginx:1.29" {
		t.Errorf("the image is %s", got)
	}
	eventually(t, "the pause to be seen", func() error {
		if r := u.try(t, "", "status", "web", "--watch=false"); r.code != 3 || !strings.Contains(r.err, "kubectl rollset resume web lets the rollout go on") {
			return fmt.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
		}
		return nil
	})
	u.fails(t, 3, []string{"status", "web", "--timeout=1m"}, "rollset web: paused; 0 of 3 pods updated")
	contains(t, u.run(t, "pause", "web", "--wait"), "unchanged")
	contains(t, u.run(t, "resume", "web", "--wait", longest()), "web resumed")
	if now := u.get(t, "web"); now.Status.UpdatedAvailableReplicas != 3 {
		t.Errorf("after resume --wait, status has %d pods updated and available", now.Status.UpdatedAvailableReplicas)
	}

	history := u.run(t, "history", "web")
	contains(t, history, "REVISION", "PROVEN", "proven", "nginx:1.28", "2 (current)", "nginx:1.29")
	contains(t, u.run(t, "history", "web", "--revision=1"), "image: nginx:1.28")
	contains(t, u.run(t, "history", "web", "-o", "yaml"), "kind: ControllerRevision")
	contains(t, u.run(t, "diff", "web"), "--- revision 1", "+++ revision 2", "-  - image: nginx:1.28", "+  - image: nginx:1.29")
	contains(t, u.run(t, "diff", "web", "--revision=2..1"), "+  - image: nginx:1.28")

	contains(t, u.run(t, "undo", "web", "--wait", longest()), "web rolled back", "to revision 1 (web-", "): 3 pods move")
	if now := u.get(t, "web"); image(now) != "nginx:1.28" || now.Status.CurrentRevision != set.Status.CurrentRevision {
		t.Errorf("after undo the image is %s and the revision %s, not %s", image(now), now.Status.CurrentRevision, set.Status.CurrentRevision)
	}
	contains(t, u.run(t, "undo", "web", "--to-revision=2", "-o", "name"), "rollset.apps.rollset.dev/web")
	contains(t, u.run(t, "status", "web", longest()), "3")
	if got := image(u.get(t, "web")); got != "nginx:1.29" {
		t.Errorf("the image is %s", got)
	}

	before := u.pods(t, "web")
	contains(t, u.run(t, "restart", "web", "--wait", longest()), "web restarted", "3 pods move")
	for _, pod := range u.pods(t, "web") {
		for i := range before {
			if pod.UID == before[i].UID {
				t.Errorf("pod %s was not restarted", pod.Name)
			}
		}
	}

	contains(t, u.run(t, "set", "partition", "web", "50%"), "web partition set")
	contains(t, u.run(t, "set", "partition", "web", "50%"), "unchanged: the partition is 50% already")
	contains(t, u.run(t, "set", "partition", "web", "0"), "web partition set", "all pods are at one revision: no pod moves")
}

// TestDeletePod replaces pods through their set.
func TestDeletePod(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newSet(t, "web", nil)
	victim := u.pods(t, "web")[0]
	contains(t, u.run(t, "delete-pod", victim.Name, "--dry-run=server"), "marked for replacement (server dry run)")
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(&victim), &victim); err != nil || len(victim.Labels[v1beta1.SpecifiedDeleteLabel]) > 0 {
		t.Errorf("a dry run marked the pod: %v %v", victim.Labels, err)
	}
	contains(t, u.run(t, "delete-pod", victim.Name, "--wait", longest()), "pod/"+victim.Name+" marked for replacement")
	err := shared.Get(t.Context(), client.ObjectKeyFromObject(&victim), &corev1.Pod{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the pod is still there: %v", err)
	}
	// One of the names is wrong, so no pod is touched.
	other := u.pods(t, "web")[0]
	u.fails(t, 1, []string{"delete-pod", other.Name, "nosuch"}, "nothing was done", `"nosuch" not found`)
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(&other), &other); err != nil || len(other.Labels[v1beta1.SpecifiedDeleteLabel]) > 0 {
		t.Errorf("the other pod was marked: %v %v", other.Labels, err)
	}
}

// TestFailedRollout checks the exit code of a rollout that fails, and of one that takes too long.
func TestFailedRollout(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newSet(t, "web", func(set *v1beta1.RollSet) { set.Spec.ProgressDeadlineSeconds = new(int32(600)) })
	// The API server rejects pods of this template, which no schema can detect.
	set := u.get(t, "web")
	patch := client.MergeFrom(set.DeepCopy())
	set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "nosuch", MountPath: "/data"}}
	if err := shared.Patch(t.Context(), set, patch); err != nil {
		t.Fatal(err)
	}
	u.fails(t, 1, []string{"status", "web", longest()}, "rollset web is stalled: InvalidTemplate", "nosuch")
	u.fails(t, 1, []string{"status", "web", "--watch=false"}, "rollset web is stalled: InvalidTemplate")
	contains(t, u.run(t, "undo", "web", "--wait"), "rolled back")

	// No node has this label, so the rollout does not end.
	set = u.get(t, "web")
	patch = client.MergeFrom(set.DeepCopy())
	set.Spec.Template.Spec.NodeSelector = map[string]string{"example.com/nosuch": "true"}
	if err := shared.Patch(t.Context(), set, patch); err != nil {
		t.Fatal(err)
	}
	r := u.try(t, "", "status", "web", "--timeout=1s")
	if r.code != 2 {
		t.Errorf("exit code %d, want 2 for what takes too long\n%s%s", r.code, r.out, r.err)
	}
	contains(t, r.err, "error: rollset web is not done within 1s")
	eventually(t, "the tree to say why", func() error {
		if tree := u.run(t, "get", "web"); !strings.Contains(tree, "Unschedulable") {
			return errors.New(tree)
		}
		return nil
	})
}

// TestOnDelete checks the exit code of a rollout that waits for its user to delete pods.
func TestOnDelete(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newSet(t, "web", func(set *v1beta1.RollSet) { set.Spec.UpdateStrategy.Type = v1beta1.OnDeleteStrategy })
	r := u.try(t, "", "set", "image", "web", "app=nginx:1.29", "--wait", longest())
	if r.code != 4 || !strings.Contains(r.err, "kubectl rollset delete-pod POD") {
		t.Errorf("exit code %d, want 4\n%s%s", r.code, r.out, r.err)
	}
	for _, pod := range u.pods(t, "web") {
		u.run(t, "delete-pod", pod.Name, "--wait", longest())
	}
	contains(t, u.run(t, "status", "web", longest()), "3 of 3 pods updated")
}

// TestUndoGoesToWhatWorked rolls back past a revision that never worked.
func TestUndoGoesToWhatWorked(t *testing.T) {
	t.Parallel()
	u := newUser(t).here()
	u.newSet(t, "web", nil)
	u.run(t, "set", "image", "web", "app=nginx:broken")
	eventually(t, "a pod at the broken revision", func() error {
		if set := u.get(t, "web"); set.Status.UpdatedReplicas == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	u.run(t, "set", "image", "web", "app=nginx:1.30")
	contains(t, u.run(t, "status", "web", longest()), "3 of 3 pods updated")
	contains(t, u.run(t, "history", "web"), "not proven", "3 (current)")
	contains(t, u.run(t, "undo", "web", "--wait", longest()), "to revision 1 (")
	if got := image(u.get(t, "web")); got != "nginx:1.28" {
		t.Errorf("undo goes to %s", got)
	}
	contains(t, u.run(t, "undo", "web", "--to-revision=2", "--dry-run=server"), "warning: revision 2 is not proven")

	// At once, whether the controller has observed the change or not.
	for _, next := range []string{"nginx:broken-1", "nginx:broken-2", "nginx:broken-3"} {
		u.run(t, "set", "image", "web", "app="+next)
		contains(t, u.run(t, "undo", "web"), "rolled back")
		if got := image(u.get(t, "web")); got != "nginx:1.28" {
			t.Errorf("undo of %s goes to %s", next, got)
		}
	}
}
