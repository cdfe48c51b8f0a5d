// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
	"rollset.dev/rollset/internal/update"
)

// template returns the template of a revision: v1 and v2 differ in the image; note2 differs from v1 in an annotation, cpu2
// in a resource that needs no restart, env2 in what cannot be changed in place.
func template(revision string) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{}
	c := corev1.Container{Name: "app", Image: "app:v1"}
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	switch revision {
	case "note2":
		t.Annotations = map[string]string{"note": "2"}
	case "cpu2":
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	case "env2":
		c.Env = []corev1.EnvVar{{Name: "A"}}
	default:
		c.Image = "app:" + revision
	}
	t.Spec.Containers = []corev1.Container{c}
	return t
}

// observe returns an observation under a policy. The pods have the gate, open unless the state says otherwise, and
// containers that are ready unless the pod is broken.
func observe(policy, config, state string) *snapshot.Set {
	snap := snapshottest.Parse(config, state)
	policy, withGrace := strings.CutSuffix(policy, " with grace")
	snap.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.PodUpdatePolicy(policy)
	if withGrace {
		snap.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: 5}
	}
	for _, name := range []string{"v1", "v2", "v3", "note2", "cpu2", "env2"} {
		snap.Known[name] = snapshot.Revision{Name: name, Template: template(name)}
	}
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		r.Pod.Spec = *snap.Known[r.Revision].Template.Spec.DeepCopy()
		if !r.Gate.Declared {
			r.Gate = inplace.Gate{Declared: true, Status: corev1.ConditionTrue}
		}
		if r.Ready || r.Updating {
			r.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
		}
	}
	return snap
}

func TestPlanInPlace(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy, config, state string
		want                  []string
	}{
		"an image closes gates as far as the budget goes": {
			config: "ordinal R=3 mu=1 v1>v2", state: "0:v1+ 1:v1+ 2:v1+",
			want: []string{
				"close gate of web-2 (update in place to v2)",
				"hold web-1 and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"then the pod is patched": {
			config: "ordinal R=3 mu=1 v1>v2", state: "0:v1+ 1:v1+ 2:v1~",
			want: []string{
				"update web-2 in place to v2 (images of app)",
				"hold web-1 and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"when the grace period is over": {
			policy: "InPlaceOnly with grace",
			config: "ordinal R=1 v1>v2", state: "0:v1~",
			want: []string{"hold web-0: out of service for gracePeriodSeconds before its containers are touched"},
		},
		"a broken pod is patched at once, and before any other": {
			policy: "InPlaceOnly with grace",
			config: "ordinal R=3 mu=1 v1>v2", state: "0:v1. 1:v1+ 2:v1+",
			want: []string{
				"update web-0 in place to v2 (images of app)",
				"hold web-2 and 1 more: 1 unavailable at revision v2, no more are moved to it",
			},
		},
		"a bad image breaks no more than the guard allows": {
			config: "ordinal R=3 mu=1 v1>v2", state: "0:v1. 1:v1. 2:v2.",
			want: []string{"hold web-1 and 1 more: 1 unavailable at revision v2, no more are moved to it"},
		},
		"a pod that is out of service serves again if the guard holds it": {
			config: "ordinal R=3 mu=2 v1>v2", state: "0:v1~ 1:v2. 2:v2.",
			want: []string{
				"open gate of web-0 (up to date with v1)",
				"hold web-0: 2 unavailable at revision v2, no more are moved to it",
			},
		},
		"a broken pod that only metadata is written to counts for the guard": {
			policy: "InPlaceIfPossible", config: "ordinal R=3 mu=1 env2>note2", state: "0:env2. 1:v1. 2:env2+",
			want: []string{
				"update web-1 in place to note2 (metadata)",
				"hold web-0 and 1 more: 1 unavailable at revision note2, no more are moved to it",
			},
		},
		"metadata is written to all at once": {
			config: "ordinal R=3 mu=1 v1>note2", state: "0:v1+ 1:v1. 2:v1r",
			want: []string{
				"update web-1 in place to note2 (metadata)",
				"update web-2 in place to note2 (metadata)",
				"update web-0 in place to note2 (metadata)",
			},
		},
		"and stops at the partition": {
			config: "ordinal R=3 p=2 mu=1 v1>note2", state: "0:v1+ 1:v1+ 2:v1+",
			want: []string{"update web-2 in place to note2 (metadata)"},
		},
		"a pod that starts is not resized": {
			config: "ordinal R=3 mu=2 v1>cpu2", state: "0:v1+ 1:v1+ 2:cpu2r",
			want: []string{"update web-1 in place to cpu2 (resources of app)", "update web-0 in place to cpu2 (resources of app)"},
		},
		"a resize without restart takes maxUnavailable pods at a time": {
			config: "ordinal R=3 mu=2 v1>cpu2", state: "0:v1+ 1:v1+ 2:v1+",
			want: []string{
				"update web-2 in place to cpu2 (resources of app)",
				"update web-1 in place to cpu2 (resources of app)",
				"hold web-0: maxUnavailable 2: 2 pods are being resized",
			},
		},
		"what cannot be changed recreates the pod, and says why": {
			config: "ordinal R=2 mu=1 v1>env2", state: "0:v1+ 1:v1+",
			want: []string{
				"delete web-1 (recreate at env2: spec.containers[app].env: added)",
				"hold web-0: 1 unavailable at revision env2, no more are moved to it",
			},
		},
		"or is held": {
			policy: "InPlaceOnly",
			config: "ordinal R=2 mu=1 v1>env2", state: "0:v1+ 1:v1+",
			want: []string{"hold web-1 and 1 more: podUpdatePolicy InPlaceOnly: spec.containers[app].env: added"},
		},
		"and back into service if it was out of it": {
			policy: "InPlaceOnly",
			config: "ordinal R=1 v1>env2", state: "0:v1~",
			want: []string{
				"open gate of web-0 (up to date with v1)",
				"hold web-0: podUpdatePolicy InPlaceOnly: spec.containers[app].env: added",
			},
		},
		"a pause puts pods back into service": {
			config: "ordinal R=2 paused v1>v2", state: "0:v1+ 1:v1~",
			want: []string{
				"open gate of web-1 (up to date with v1)",
				"hold web-0 and 1 more: the rollout is paused",
			},
		},
		"the partition holds in the other direction": {
			config: "ordinal R=2 p=2 mu=1 v1>v2", state: "0:v1+ 1:v2+",
			want: []string{"close gate of web-1 (update in place to v1)"},
		},
		"a stray is patched too": {
			config: "ordinal R=2 mu=1 v2>v3", state: "0:v2+ 1:v1~",
			want: []string{
				"update web-1 in place to v3 (images of app)",
				"hold web-0: 1 unavailable at revision v3, no more are moved to it",
			},
		},
		"surge takes no other pod's place": {
			config: "random R=2 mu=0 surge=1 v1>v2", state: "a:v1+ b:v2+ c:v2+*",
			want: []string{"close gate of web-a (update in place to v2)"},
		},
		"the strategy Recreate recreates": {
			config: "ordinal R=1 recreate v1>v2", state: "0:v1+",
			want: []string{"delete web-0 (recreate at v2)"},
		},
		"a pod that a user wants replaced is": {
			config: "ordinal R=2 mu=1 v1>v2", state: "0:v1+ 1:v1+@",
			want: []string{
				"delete web-1 (replacement requested)",
				"hold web-0: 1 unavailable at revision v2, no more are moved to it",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.policy == "" {
				tt.policy = string(v1beta1.InPlaceIfPossiblePod)
			}
			snap := observe(tt.policy, tt.config, tt.state)
			checkPlan(t, snap, tt.want)
		})
	}
}

func checkPlan(t *testing.T, snap *snapshot.Set, want []string) {
	t.Helper()
	p := update.Plan(snap, desired.Of(snap), action.Plan{})
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.TrimSuffix(p.String(), "\n")); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// TestPlanWithoutPatch covers a pod that lacks the container whose image changes, as an adopted pod may. The plan finds out
// before the pod is taken out of service, and not only when it is to be patched.
func TestPlanWithoutPatch(t *testing.T) {
	t.Parallel()
	for policy, want := range map[v1beta1.PodUpdatePolicy]string{
		v1beta1.InPlaceIfPossiblePod: "delete web-0 (recreate at v2: patch pod web-0: it has no container app)",
		v1beta1.InPlaceOnlyPod:       "hold web-0: podUpdatePolicy InPlaceOnly: patch pod web-0: it has no container app",
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			snap := observe(string(policy), "ordinal R=1 v1>v2", "0:v1+")
			snap.Replicas[0].Pod.Spec.Containers[0].Name = "other"
			checkPlan(t, snap, []string{want})
		})
	}
}

// TestPlanGateReopened covers another client that opens a gate during the grace period, or just before it. The pod gets
// traffic as soon as its node has seen that, so the grace period starts again.
func TestPlanGateReopened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open time.Time
		want string
	}{
		"after the node saw it closed": {open: at(5), want: "close gate of web-0 (update in place to v2)"},
		"in the same second":           {open: at(3), want: "close gate of web-0 (update in place to v2)"},
		"and was not ready since":      {open: at(1), want: "update web-0 in place to v2 (images of app)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe("InPlaceOnly with grace", "ordinal R=1 v1>v2", "0:v1.")
			r := &snap.Replicas[0]
			r.Pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: v1beta1.InPlaceUpdateReady}}
			r.Pod.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(at(3))},
				{Type: v1beta1.InPlaceUpdateReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.open)},
			}
			r.Gate = inplace.GateOf(r.Pod)
			checkPlan(t, snap, []string{c.want})
		})
	}
}

// at returns a time, in seconds after a fixed one.
func at(seconds int) time.Time { return time.Date(2026, 1, 1, 0, 0, seconds, 0, time.UTC) }

// TestPlanEnd covers pods that are at their revision but have not completed the change that brought them there.
func TestPlanEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		policy string
		change func(*snapshot.Replica)
		want   []string
	}{
		"a closed gate is opened": {
			change: func(r *snapshot.Replica) { r.Gate.Status = corev1.ConditionFalse },
			want:   []string{"open gate of web-0 (up to date with cpu2)"},
		},
		"so is one that was never set": {
			change: func(r *snapshot.Replica) { r.Gate.Status = "" },
			want:   []string{"open gate of web-0 (up to date with cpu2)"},
		},
		"a container that has not restarted is waited for": {
			change: func(r *snapshot.Replica) {
				r.Gate.Status, r.Restarting = corev1.ConditionFalse, true
			},
		},
		"resources are asked for": {
			change: func(r *snapshot.Replica) {
				r.Progress.Resize, r.InPlace.Resized = "container app is to be resized", []string{"app"}
				r.Pod.Spec = template("v1").Spec
			},
			want: []string{"resize web-0 to the resources of cpu2"},
		},
		"once": {
			change: func(r *snapshot.Replica) { r.Progress.Resize, r.InPlace.Resized = "Deferred", []string{"app"} },
		},
		"what the node cannot give recreates the pod": {
			change: func(r *snapshot.Replica) { r.Progress.Resize, r.Infeasible = "infeasible", "the node is too small" },
			want:   []string{"delete web-0 (recreate at cpu2: resize: the node is too small)"},
		},
		"or is held": {
			policy: "InPlaceOnly",
			change: func(r *snapshot.Replica) { r.Progress.Resize, r.Infeasible = "infeasible", "the node is too small" },
			want:   []string{"hold web-0: podUpdatePolicy InPlaceOnly: resize: the node is too small"},
		},
		"what the API server has refused is asked for again after a while": {
			policy: "InPlaceOnly",
			change: func(r *snapshot.Replica) {
				r.Progress.Resize, r.Infeasible, r.AskAgain, r.InPlace.Resized = "resize", "too much", true, []string{"app"}
				r.Pod.Spec.Containers[0].Resources.Requests = nil
			},
			want: []string{
				"resize web-0 to the resources of cpu2",
				"hold web-0: podUpdatePolicy InPlaceOnly: resize: too much",
			},
		},
		"a resize that has to wait keeps a pod from nothing": {
			change: func(r *snapshot.Replica) {
				r.Gate.Status, r.Progress.Resize, r.InPlace.Resized = corev1.ConditionFalse, "Deferred", []string{"app"}
			},
			want: []string{"open gate of web-0 (up to date with cpu2)"},
		},
		"nor does one that is refused": {
			policy: "InPlaceOnly",
			change: func(r *snapshot.Replica) {
				r.Gate.Status, r.Progress.Resize, r.Infeasible = corev1.ConditionFalse, "resize", "too much"
			},
			want: []string{
				"open gate of web-0 (up to date with cpu2)",
				"hold web-0: podUpdatePolicy InPlaceOnly: resize: too much",
			},
		},
		"a proof that does not come recreates the pod": {
			change: func(r *snapshot.Replica) {
				r.Gate.Status, r.Restarting, r.Unproven = corev1.ConditionFalse, true, "no proof"
			},
			want: []string{"delete web-0 (recreate at cpu2: no proof)"},
		},
		"or holds it": {
			policy: "InPlaceOnly",
			change: func(r *snapshot.Replica) {
				r.Gate.Status, r.Restarting, r.Unproven = corev1.ConditionFalse, true, "no proof"
			},
			want: []string{"hold web-0: podUpdatePolicy InPlaceOnly: no proof"},
		},
		"a proof that will not last is kept by the gate": {
			change: func(r *snapshot.Replica) { r.Gate.Status, r.Progress.Passing = corev1.ConditionFalse, true },
			want:   []string{"open gate of web-0 (up to date with cpu2)"},
		},
		"or written down": {
			change: func(r *snapshot.Replica) { r.Gate, r.Progress.Passing = inplace.Gate{}, true },
			want:   []string{"update web-0 in place to cpu2 (its update is done)"},
		},
		"but not of a pod that goes for it": {
			change: func(r *snapshot.Replica) {
				r.Progress.Resize, r.Infeasible, r.AskAgain, r.InPlace.Resized = "resize", "too much", true, []string{"app"}
				r.Pod.Spec.Containers[0].Resources.Requests = nil
			},
			want: []string{"delete web-0 (recreate at cpu2: resize: too much)"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.policy == "" {
				tt.policy = string(v1beta1.InPlaceIfPossiblePod)
			}
			snap := observe(tt.policy, "ordinal R=1 mu=1 cpu2", "0:cpu2+")
			tt.change(&snap.Replicas[0])
			checkPlan(t, snap, tt.want)
		})
	}
}

// TestPlanUnproven covers a pod that serves although it is not known which images it runs. It is recreated within the budget, to
// which it still counts.
func TestPlanUnproven(t *testing.T) {
	t.Parallel()
	const (
		waits   = "hold web-0: no proof; it is recreated when enough other pods are available"
		deleted = "delete web-0 (recreate at cpu2: no proof)"
	)
	for name, tt := range map[string]struct {
		config, state string
		change        func(*snapshot.Set)
		want          []string
	}{
		"the only pod stays": {config: "ordinal R=1 mu=0 cpu2", state: "0:cpu2+", want: []string{waits}},
		"it does not serve behind its gate": {
			config: "ordinal R=1 mu=0 cpu2", state: "0:cpu2+",
			change: func(snap *snapshot.Set) { snap.Replicas[0].Gate.Status = corev1.ConditionFalse },
			want:   []string{deleted},
		},
		"nor unless it is ready": {
			config: "ordinal R=1 mu=0 cpu2", state: "0:cpu2+",
			change: func(snap *snapshot.Set) { snap.Replicas[0].Ready = false },
			want:   []string{deleted},
		},
		"another counts when it is available": {config: "ordinal R=2 mu=1 cpu2", state: "0:cpu2+ 1:cpu2r", want: []string{waits}},
		"and once": {
			config: "ordinal R=2 mu=0 cpu2", state: "0:cpu2+ 1:cpu2+",
			change: func(snap *snapshot.Set) { snap.Replicas[1].Unproven = "not resized" },
			want:   []string{"hold web-0 and 1 more: no proof; it is recreated when enough other pods are available"},
		},
		"another template moves a broken pod first": {config: "ordinal R=2 mu=1 env2>v2", state: "0:env2+ 1:env2.", want: []string{
			"delete web-1 (recreate at v2: spec.containers[app].env: removed)",
			"hold web-0 and 1 more: maxUnavailable 1: 0 of 2 pods are available, web-0 and 1 more are not",
		}},
		"and then this one": {config: "ordinal R=2 mu=1 env2>v2", state: "0:env2+ 1:v2+", want: []string{
			"delete web-0 (recreate at v2: spec.containers[app].env: removed)",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe("InPlaceIfPossible", tt.config, tt.state)
			r := &snap.Replicas[0]
			r.Available, r.Updating, r.Restarting, r.Unproven = false, true, true, "no proof"
			if tt.change != nil {
				tt.change(snap)
			}
			checkPlan(t, snap, tt.want)
		})
	}
}

// TestUnprovenPodsCountUntilTheyMove has pods that may run other images, beside one that terminates: as many move as maxUnavailable leaves.
func TestUnprovenPodsCountUntilTheyMove(t *testing.T) {
	t.Parallel()
	snap := observe("InPlaceIfPossible", "ordinal R=4 p=1 mu=2 env2>v2", "0:env2x 1:env2+ 2:env2+ 3:env2+")
	for i := range snap.Replicas[1:] {
		r := &snap.Replicas[1+i]
		r.Available, r.Updating, r.Restarting, r.Unproven = false, true, true, "no proof"
	}
	checkPlan(t, snap, []string{
		"delete web-3 (recreate at v2: spec.containers[app].env: removed)",
		"hold web-2 and 3 more: maxUnavailable 2: 0 of 4 pods are available, web-1 and 3 more are not",
	})
}

// TestPlanInfeasibleResize recreates a pod that serves with its old resources as any other pod that serves.
func TestPlanInfeasibleResize(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		"0:cpu2+ 1:cpu2x": "hold web-0: maxUnavailable 1: 1 of 2 pods are available, 1 missing",
		"0:cpu2+ 1:cpu2+": "delete web-0 (recreate at cpu2: resize: no room)",
	} {
		snap := observe("InPlaceIfPossible", "ordinal R=2 mu=1 cpu2", state)
		snap.Replicas[0].Infeasible = "no room"
		checkPlan(t, snap, []string{want})
	}
}

// TestSurgeForRecreation makes surge for pods that can only be recreated, unless the policy forbids that.
func TestSurgeForRecreation(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]int{"InPlaceIfPossible": 1, "InPlaceOnly": 0} {
		if got := len(desired.Of(observe(policy, "random R=3 mu=0 surge=1 v1>env2", "a:v1+ b:v1+ c:v1+")).Places); got != want {
			t.Errorf("%s: %d surge pods, want %d", policy, got, want)
		}
	}
}

// TestPlanPassingProof writes down that an update is done, of a pod that waits for the next one.
func TestPlanPassingProof(t *testing.T) {
	t.Parallel()
	snap := observe("InPlaceIfPossible", "ordinal R=2 mu=1 env2>v2", "0:env2+ 1:env2x")
	snap.Replicas[0].Progress.Passing = true
	checkPlan(t, snap, []string{
		"update web-0 in place to env2 (its update is done)",
		"hold web-0: 1 unavailable at revision v2, no more are moved to it",
	})
}

// TestPlanReader covers a label that a container reads and that another client added to the running pod.
func TestPlanReader(t *testing.T) {
	t.Parallel()
	reader := corev1.Container{Name: "proxy", Env: []corev1.EnvVar{{
		Name: "NOTE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['note']"}},
	}}}
	for policy, want := range map[string]string{
		"InPlaceIfPossible": "delete web-0 (recreate at note2: metadata.annotations[note]: spec.containers[proxy].env[NOTE] reads it)",
		"InPlaceOnly":       "hold web-0: podUpdatePolicy InPlaceOnly: metadata.annotations[note]: spec.containers[proxy].env[NOTE] reads it",
	} {
		snap := observe(policy, "ordinal R=1 mu=1 v1>note2", "0:v1+")
		snap.Replicas[0].Pod.Spec.Containers = append(snap.Replicas[0].Pod.Spec.Containers, reader)
		checkPlan(t, snap, []string{want})
	}
}

// TestPlanLeaves covers pods that were taken out of service for a move that is not made now: they are put back, whatever the
// reason.
func TestPlanLeaves(t *testing.T) {
	t.Parallel()
	open := "open gate of web-1 (up to date with v1)"
	tests := map[string]struct {
		preflight *snapshot.Preflight
		change    func(*snapshot.Set)
		want      []string
	}{
		"the API server refuses the template": {
			preflight: &snapshot.Preflight{Refusal: "denied by policy", Retry: time.Minute},
			want:      []string{open, "hold web-0 and 1 more: the API server refuses pods of revision v2: denied by policy"},
		},
		"it cannot judge it": {
			preflight: &snapshot.Preflight{Refusal: "a webhook is down", Failed: true, Retry: time.Minute},
			want:      []string{open, "hold web-0 and 1 more: the API server cannot judge pods of revision v2: a webhook is down"},
		},
		"it is asked again": {
			preflight: &snapshot.Preflight{Refusal: "denied by policy"},
			want:      []string{"preflight v2", open, "hold web-0 and 1 more: the API server refuses pods of revision v2: denied by policy"},
		},
		"until it has answered, nothing is turned": {
			preflight: nil,
			want:      []string{"preflight v2", "hold web-0 and 1 more: asking the API server whether it accepts pods of revision v2"},
		},
		"the user pauses": {
			preflight: &snapshot.Preflight{},
			change:    func(snap *snapshot.Set) { snap.Spec.UpdateStrategy.RollingUpdate.Paused = true },
			want:      []string{open, "hold web-0 and 1 more: the rollout is paused"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe("InPlaceIfPossible", "ordinal R=2 mu=1 v1>v2", "0:v1+ 1:v1~")
			snap.Preflights = map[string]snapshot.Preflight{}
			if tt.preflight != nil {
				snap.Preflights["v2"] = *tt.preflight
			}
			if tt.change != nil {
				tt.change(snap)
			}
			checkPlan(t, snap, tt.want)
		})
	}
}

// TestQuotaOfResizes moves no pod that gets other resources while a quota refuses them, and any other pod.
func TestQuotaOfResizes(t *testing.T) {
	t.Parallel()
	for update, want := range map[string]string{
		"cpu2": "hold web-0: exceeded quota",
		"v2":   "close gate of web-0 (update in place to v2)",
		"env2": "delete web-0 (recreate at env2: spec.containers[app].env: added)",
	} {
		snap := observe("InPlaceIfPossible", "ordinal R=1 mu=1 v1>"+update, "0:v1+")
		snap.Refusals = map[attempt.Key]snapshot.Refusal{attempt.Any(attempt.Resizing): {Message: "exceeded quota", Retry: time.Minute}}
		checkPlan(t, snap, []string{want})
	}
}

// TestStrayBesideAHook has a stray that has been broken for long, while a pod takes the place that it could have at the update revision.
// The stray goes back unless that pod waits for a hook, however long, or is ready.
func TestStrayBesideAHook(t *testing.T) {
	t.Parallel()
	const holds = "hold web-1 and 1 more: 1 unavailable at revision v3, no more are moved to it"
	for _, tt := range []struct {
		state      string
		restarting bool
		want       []string
	}{
		{"0:v1+ 1:v2, 2:v3~", true, []string{"update web-1 in place to v1 (images of app)", "hold web-0: 1 unavailable at revision v3, no more are moved to it"}},
		{"0:v1+ 1:v2, 2:v3~", false, []string{"open gate of web-2 (up to date with v3)", holds}},
		{"0:v1+ 1:v2. 2:v3~", true, []string{holds}},
		{"0:v1+ 1:v2, 2:v3r", false, []string{holds}},
	} {
		snap := observe("InPlaceIfPossible", "ordinal R=3 mu=1 v1>v3", tt.state)
		snap.Replicas[2].Restarting, snap.Replicas[2].Waited = tt.restarting, time.Hour
		checkPlan(t, snap, tt.want)
	}
}

// TestResizeDisturbsItsDomain recreates no pod of another failure domain beside one that is being resized.
func TestResizeDisturbsItsDomain(t *testing.T) {
	t.Parallel()
	snap := observe("InPlaceIfPossible", "ordinal R=3 mu=2 soak=0 v1>cpu2", "a/0:v1+ b/1:cpu2+ a/2:cpu2+")
	snap.Replicas[1].Infeasible = "no room"
	checkPlan(t, snap, []string{
		"update web-0 in place to cpu2 (resources of app)",
		"hold web-1: zone b waits for web-0 in zone a, which is next; zone a: 1 of 2 pods moved, zone b: 1 of 1 pods moved",
	})
}

// TestDomainThatCannotMove has a failure domain that has begun, and whose last pod cannot be changed in place. The next domain goes on.
func TestDomainThatCannotMove(t *testing.T) {
	t.Parallel()
	snap := observe("InPlaceOnly", "ordinal R=4 mu=1 soak=0 env2>v2", "a/0:env2+ b/1:v1+ a/2:v2+ b/3:v1+")
	checkPlan(t, snap, []string{
		"close gate of web-3 (update in place to v2)",
		"hold web-0: podUpdatePolicy InPlaceOnly: spec.containers[app].env: removed",
		"hold web-1: 1 unavailable at revision v2, no more are moved to it",
	})
}

// TestRecreationDoesNotSoak recreates a pod that cannot get its resources a minute after a pod of another domain was replaced. A pod that
// a user named waits.
func TestRecreationDoesNotSoak(t *testing.T) {
	t.Parallel()
	for named, want := range map[bool]string{false: "delete web-1 (recreate at cpu2: resize: no room)", true: "hold web-1: zone b waits for soakSeconds to pass until 03:08:05Z; zone b: 1 to replace"} {
		snap := observe("InPlaceIfPossible", "ordinal R=2 mu=1 soak=300 cpu2", "a/0:cpu2+ b/1:cpu2+")
		origin := snapshot.Origin{Revision: "cpu2", Known: true, Domain: snapshot.Domain{Value: "a"}}
		snap.Replicas[0].Pod.Annotations = map[string]string{v1beta1.OriginAnnotation: origin.String(snapshottest.Zone)}
		snap.Replicas[0].ReadySince = snap.Now.Add(-time.Minute)
		if snap.Replicas[1].Specified = named; !named {
			snap.Replicas[1].Infeasible = "no room"
		}
		checkPlan(t, snap, []string{want})
	}
}
