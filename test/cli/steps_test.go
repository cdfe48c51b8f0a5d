// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"rollset.dev/rollset/api/v1beta1"
)

// inPhase waits until a rollout is at a step, in a phase.
func inPhase(t *testing.T, u *user, step int32, phase v1beta1.RolloutPhase) *v1beta1.RollSet {
	t.Helper()
	var set *v1beta1.RollSet
	eventually(t, fmt.Sprintf("step %d to be %s", step, phase), func() error {
		set = u.get(t, "web")
		if r := set.Status.Rollout; r == nil || r.Step != step || r.Phase != phase {
			return fmt.Errorf("it is %+v", r)
		}
		return nil
	})
	return set
}

// newJudge returns a user of the same namespace who has only the shipped role for gates.
func newJudge(t *testing.T, u *user) *user {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared.root, "config", "rbac", "rollset_gate-writer_role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shipped := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(text, shipped); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "judge"}, Rules: shipped.Rules}
	judge := *u
	name := "judge-" + u.namespace
	if judge.kubeconfig, err = shared.KubeconfigFor(name); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "judge"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	if err := errors.Join(shared.Create(t.Context(), role), shared.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	return &judge
}

// TestSteps takes a rollout through its steps: by a gate, by a promotion, and by an abort and a retry.
func TestSteps(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.newSet(t, "web", func(set *v1beta1.RollSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Steps = []v1beta1.RolloutStep{
			{Updated: intstr.FromInt32(1), Gates: []v1beta1.StepGate{{ConditionType: "Smoke"}}},
			{Updated: intstr.FromString("70%"), Pause: true},
		}
	})
	u.fails(t, 1, []string{"promote", "web"}, "rollset web has no step at work; nothing was done")
	u.fails(t, 1, []string{"abort", "web"}, "rollset web rolls nothing out; nothing was done")
	u.fails(t, 1, []string{"retry", "web"}, "no revision of rollset web is given up")
	u.fails(t, 2, []string{"gate", "web", "Smoke", "--timeout=1ms", "--", "true"}, "no step of rollset web waited for gate Smoke")
	u.fails(t, 1, []string{"gate", "web", "Nosuch", "--", "true"}, "no step of rollset web has gate Nosuch; its gates are: Smoke")
	u.fails(t, 1, []string{"gate", "web", "Smoke"}, "what judges the step?")
	u.fails(t, 1, []string{"gate", "web", "Smoke", "--query=x", "--", "true"}, "a command and --prometheus are given")

	contains(t, u.run(t, "plan", "web", "--set-image=app=nginx:1.29"),
		"step 1 of 2: 1 of 3 pods updated; waiting for gate Smoke", "step 2 of 2: 2 of 3 pods updated; waiting for annotation")
	u.run(t, "set", "image", "web", "app=nginx:1.29")
	contains(t, u.run(t, "promote", "web"), "unchanged: step 1 of 2 has no pause")
	u.fails(t, 1, []string{"gate", "web", "Smoke", "--", "sh", "-c", "echo 3% errors; exit 7"}, "gate Smoke of rollset web is False: sh ended with exit code 7: 3% errors")
	inPhase(t, u, 1, v1beta1.RolloutFailed)
	u.fails(t, 1, []string{"status", "web", "--watch=false"}, "StepFailed: step 1 of 2: 1 of 3 pods updated; gate Smoke is False")
	judge := newJudge(t, u)
	u.eventuallyWhy(t, "gate: step 1 of 2: gate Smoke is False: sh ended with exit code 7", "kubectl rollset gate web Smoke -- COMMAND")
	contains(t, judge.run(t, "gate", "web", "Smoke", "--", "true"), "gate Smoke of rollset web is True")

	set := inPhase(t, u, 2, v1beta1.RolloutPaused)
	judge.fails(t, 1, []string{"promote", "web"}, `cannot patch resource "rollsets"`)
	contains(t, u.run(t, "status", "web", "--watch=false"), "step 2 of 2: 2 of 3 pods updated; waiting for annotation")
	contains(t, u.run(t, "get", "web"), "step 2 of 2: 2 of 3 pods updated", "steps  ✔ 1  ▶ 70% paused  ○ all")
	contains(t, u.run(t, "plan", "web"), "step 2 of 2: 2 of 3 pods updated; waiting for annotation", "and what gates and people take", "delete pods")
	u.eventuallyWhy(t, "promotion: step 2 of 2 waits until somebody promotes it", "lifted by: kubectl rollset promote web")
	contains(t, u.run(t, "promote", "web", "--dry-run=server"), "web promoted (server dry run)")
	contains(t, u.run(t, "abort", "web", "--wait", longest()), "web aborted", "all pods go back to revision "+set.Status.CurrentRevision)
	contains(t, u.run(t, "abort", "web"), "unchanged: revision "+set.Status.UpdateRevision+" is given up already")
	u.fails(t, 1, []string{"promote", "web"}, "is given up; nothing was done; kubectl rollset retry web begins it again")

	contains(t, u.run(t, "retry", "web"), "web tried again")
	contains(t, u.run(t, "gate", "web", "Smoke", "--", "true"), "gate Smoke of rollset web is True")
	inPhase(t, u, 2, v1beta1.RolloutPaused)
	contains(t, u.run(t, "promote", "web", "--wait", longest()), "web promoted", "step 2 of 2 ends")
	if now := u.get(t, "web"); now.Status.Rollout != nil || now.Status.CurrentRevision != set.Status.UpdateRevision {
		t.Errorf("after the last step the rollout is %+v, the current revision %s", now.Status.Rollout, now.Status.CurrentRevision)
	}

	u.run(t, "set", "image", "web", "app=nginx:1.30")
	inPhase(t, u, 1, v1beta1.RolloutGated)
	contains(t, u.run(t, "promote", "web", "--full", "--wait", longest()), "web promoted", "step 1 of 2 and all that follow end")
	if now := u.get(t, "web"); now.Status.UpdatedAvailableReplicas != 3 {
		t.Errorf("after promote --full --wait, status has %d pods updated and available", now.Status.UpdatedAvailableReplicas)
	}
}

// TestRequestsAreMadeAgain makes requests that the controller has handled before: each verb replaces its own annotation.
func TestRequestsAreMadeAgain(t *testing.T) {
	t.Parallel()
	u := newUser(t).here()
	u.newSet(t, "web", func(set *v1beta1.RollSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Steps = []v1beta1.RolloutStep{{Updated: intstr.FromInt32(1), Pause: true}, {Updated: intstr.FromString("70%"), Pause: true}}
	})
	u.run(t, "set", "image", "web", "app=nginx:1.29")
	for range 2 {
		inPhase(t, u, 1, v1beta1.RolloutPaused)
		contains(t, u.run(t, "promote", "web"), "web promoted")
		inPhase(t, u, 2, v1beta1.RolloutPaused)
		contains(t, u.run(t, "abort", "web", "--wait", longest()), "web aborted")
		contains(t, u.run(t, "retry", "web"), "web tried again")
	}
	inPhase(t, u, 1, v1beta1.RolloutPaused)
	contains(t, u.run(t, "abort", "web", "--wait", longest()), "web aborted")
	// The same template again: the abort from before is handled, and the new one is another.
	u.run(t, "set", "image", "web", "app=nginx:1.28")
	contains(t, u.run(t, "status", "web", longest()), "3 of 3 pods updated")
	u.run(t, "set", "image", "web", "app=nginx:1.29")
	inPhase(t, u, 1, v1beta1.RolloutPaused)
	contains(t, u.run(t, "abort", "web", "--wait", longest()), "web aborted", "all pods go back")
}
