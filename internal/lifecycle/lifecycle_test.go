// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/lifecycle"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/model/snapshot/snapshottest"
)

// observe returns a set of one pod, web-a, with one hook. The marks of the pod are L for the label and F for the finalizer,
// and ! for one that has failed.
func observe(hook, state, marks string) *snapshot.Set {
	snap := snapshottest.Parse("random R=1 v1", "a:v1+")
	name, withdraws := strings.CutSuffix(hook, "!")
	h := &v1beta1.LifecycleHook{
		LabelsHandler:     map[string]string{"example.com/hook": "on"},
		FinalizersHandler: []string{"example.com/hook"},
		MarkPodNotReady:   withdraws,
	}
	switch name {
	case "preNormal":
		snap.Spec.Lifecycle = &v1beta1.Lifecycle{PreNormal: h}
	case "inPlaceUpdate":
		snap.Spec.Lifecycle = &v1beta1.Lifecycle{InPlaceUpdate: h}
	case "preDelete":
		snap.Spec.Lifecycle = &v1beta1.Lifecycle{PreDelete: h}
	}
	r := &snap.Replicas[0]
	r.Pod.Labels = map[string]string{}
	if state != "" {
		r.Pod.Labels[v1beta1.LifecycleStateLabel] = state
	}
	if strings.Contains(marks, "L") {
		r.Pod.Labels["example.com/hook"] = "on"
	}
	if strings.Contains(marks, "F") {
		r.Pod.Finalizers = []string{"example.com/hook"}
	}
	r.Finished = strings.Contains(marks, "!")
	r.Gate = inplace.Gate{Declared: true, Status: corev1.ConditionTrue}
	show(snap)
	return snap
}

// show sets what a snapshot says about the hook of the only pod.
func show(snap *snapshot.Set) {
	r := &snap.Replicas[0]
	r.State = lifecycle.StateOf(snap.Spec, r.Pod)
	r.Hook, r.Overdue = lifecycle.Wait(snap.Spec, r.Pod, snap.Now)
}

// planned returns the plan for a set of one pod with which the planners want to do something.
func planned(snap *snapshot.Set, do string) action.Plan {
	restart := inplace.Change{Images: map[string]string{"app": "v2"}, Restarts: []string{"app"}}
	pod := snap.Replicas[0].Pod
	var p action.Plan
	switch do {
	case "delete":
		p.Add(action.Delete{Pod: pod, Reason: "why"})
	case "close":
		p.Add(action.CloseGate{Pod: pod, Reason: "why"})
	case "annotate":
		p.Add(action.UpdateInPlace{Pod: pod, Revision: "v2"})
	case "update":
		p.Add(action.UpdateInPlace{Pod: pod, Revision: "v2", Change: restart})
	case "ask":
		p.Add(action.Preflight{Revision: "v2"})
	}
	hooks := lifecycle.New(snap)
	p = hooks.Apply(p)
	hooks.Keep(&desired.State{}, p)
	p.Join(hooks.Settle())
	return p
}

func TestHooks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		hook, state, marks string
		// do says what the planners want to do with the pod.
		do   string
		want string
	}{
		"a pod without marks is deleted": {
			hook: "preDelete", do: "delete", want: "delete web-a (why)\n",
		},
		"one with a label is prepared": {
			hook: "preDelete", marks: "L", do: "delete",
			want: "set web-a to PreparingDelete (lifecycle hook preDelete waits until label example.com/hook=on is gone)\n" +
				"hold web-a: lifecycle hook preDelete waits until label example.com/hook=on is gone\n",
		},
		"and waits": {
			hook: "preDelete", state: "PreparingDelete", marks: "F", do: "delete",
			want: "hold web-a: lifecycle hook preDelete waits until finalizer example.com/hook is gone\n",
		},
		"out of service, if the hook says so": {
			hook: "preDelete!", state: "PreparingDelete", marks: "F", do: "delete",
			want: "close gate of web-a (lifecycle hook preDelete waits until finalizer example.com/hook is gone)\n" +
				"hold web-a: lifecycle hook preDelete waits until finalizer example.com/hook is gone\n",
		},
		"until the marks are gone": {
			hook: "preDelete", state: "PreparingDelete", do: "delete", want: "delete web-a (why)\n",
		},
		"or the hook is": {
			state: "PreparingDelete", marks: "LF", do: "delete", want: "delete web-a (why)\n",
		},
		"a pod that is no longer to be deleted goes back": {
			hook: "preDelete", state: "PreparingDelete", marks: "LF",
			want: "set web-a to Normal (it is no longer to be deleted)\n",
		},
		"a set without hooks writes no states": {state: "PreparingDelete", marks: "LF"},
		"a pod with a mark is prepared for its update": {
			hook: "inPlaceUpdate", marks: "F", do: "close",
			want: "set web-a to PreparingUpdate (lifecycle hook inPlaceUpdate waits until finalizer example.com/hook is gone)\n" +
				"hold web-a: lifecycle hook inPlaceUpdate waits until finalizer example.com/hook is gone\n",
		},
		"without one its gate is closed": {
			hook: "inPlaceUpdate", state: "PreparingUpdate", do: "close", want: "close gate of web-a (why)\n",
		},
		"an update that restarts nothing waits for no hook": {
			hook: "inPlaceUpdate", marks: "LF", do: "annotate", want: "update web-a in place to v2 (metadata)\n",
		},
		"what restarts a container waits": {
			hook: "inPlaceUpdate", state: "PreparingUpdate", marks: "L", do: "update",
			want: "hold web-a: lifecycle hook inPlaceUpdate waits until label example.com/hook=on is gone\n",
		},
		"an update that is no longer wanted": {
			hook: "inPlaceUpdate", state: "PreparingUpdate", marks: "L",
			want: "set web-a to Normal (it is no longer to be updated)\n",
		},
		"is still prepared while the API server is asked": {
			hook: "inPlaceUpdate", state: "PreparingUpdate", marks: "L", do: "ask", want: "preflight v2\n",
		},
		"what is no move goes on meanwhile": {
			hook: "preNormal", state: "PreparingNormal", marks: "LF", do: "ask",
			want: "preflight v2\nset web-a to Normal (the hook has its marks)\n",
		},
		"an updated pod waits for all marks": {
			hook: "inPlaceUpdate", state: "Updating", marks: "L", want: "set web-a to Updated (the update is done)\n",
		},
		"and says for which": {
			hook: "inPlaceUpdate", state: "Updated", marks: "L",
			want: "hold web-a: lifecycle hook inPlaceUpdate waits for finalizer example.com/hook\n",
		},
		"with all of them it is normal": {
			hook: "inPlaceUpdate", state: "Updated", marks: "LF", want: "set web-a to Normal (the hook has its marks)\n",
		},
		"a new pod waits for all marks": {
			hook: "preNormal", state: "PreparingNormal", marks: "F",
			want: "hold web-a: lifecycle hook preNormal waits for label example.com/hook=on\n",
		},
		"and is normal with them": {
			hook: "preNormal", state: "PreparingNormal", marks: "LF", want: "set web-a to Normal (the hook has its marks)\n",
		},
		"one that has failed is not":     {hook: "preNormal", state: "PreparingNormal", marks: "LF!"},
		"an unknown state means nothing": {hook: "preNormal", state: "Confused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe(tt.hook, tt.state, tt.marks)
			p := planned(snap, tt.do)
			if diff := cmp.Diff(tt.want, p.String()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeep has a pod that is prepared for its update, and an update that does not move it.
func TestKeep(t *testing.T) {
	t.Parallel()
	const back = "set web-a to Normal (it is no longer to be updated)\n"
	for name, tt := range map[string]struct {
		closed, opens bool
		answer        snapshot.Preflight
		want          string
	}{
		"while the API server cannot judge its successor, it stays prepared": {answer: snapshot.Preflight{Refusal: "a webhook is down", Failed: true}},
		"if its successor is refused, it goes back":                          {answer: snapshot.Preflight{Refusal: "denied"}, want: back},
		"out of service, it stays prepared":                                  {closed: true},
		"if it comes back into service, it goes back":                        {closed: true, opens: true, want: back},
		"in service, it goes back":                                           {want: back},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := observe("inPlaceUpdate", "PreparingUpdate", "L")
			snap.Preflights = map[string]snapshot.Preflight{"v2": tt.answer}
			r := &snap.Replicas[0]
			r.Gate = inplace.Gate{Declared: true, Status: corev1.ConditionTrue}
			if tt.closed {
				r.Gate.Status = corev1.ConditionFalse
			}
			var update action.Plan
			if tt.opens {
				update.Add(action.OpenGate{Pod: r.Pod})
			}
			hooks := lifecycle.New(snap)
			hooks.Keep(&desired.State{Candidates: []desired.Candidate{{Replica: r, To: "v2"}}}, update)
			p := hooks.Settle()
			if diff := cmp.Diff(tt.want, p.String()); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeepUntilProven checks that a pod stays prepared while a new manager waits for the proof of its update in place again.
func TestKeepUntilProven(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{0: "set web-a to Normal (it is no longer to be deleted)\n", time.Minute: ""} {
		snap := observe("preDelete", "PreparingDelete", "L")
		snap.Replicas[0].ProofWait = wait
		hooks := lifecycle.New(snap)
		hooks.Keep(&desired.State{}, action.Plan{})
		p := hooks.Settle()
		if diff := cmp.Diff(want, p.String()); diff != "" {
			t.Errorf("plan with %s left (-want +got):\n%s", wait, diff)
		}
	}
}

// TestApplyMarksUpdates checks that the patch of an update also writes the state, and does not change the input.
func TestApplyMarksUpdates(t *testing.T) {
	t.Parallel()
	snap := observe("inPlaceUpdate", "PreparingUpdate", "")
	shared := map[string]string{"tier": "front"}
	change := inplace.Change{Restarts: []string{"app"}, Labels: inplace.Keys{Set: shared}}
	p := lifecycle.New(snap).Apply(action.Plan{Actions: []action.Action{
		action.UpdateInPlace{Pod: snap.Replicas[0].Pod, Revision: "v2", Change: change},
	}})
	got, _ := p.Actions[0].(action.UpdateInPlace)
	want := map[string]string{"tier": "front", v1beta1.LifecycleStateLabel: "Updating"}
	if diff := cmp.Diff(want, got.Change.Labels.Set); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	date := lifecycle.Record(v1beta1.LifecycleUpdating, snap.Now, snapshot.Passed{})
	if got := got.Change.Annotations.Set[v1beta1.LifecycleSinceAnnotation]; got != date {
		t.Errorf("the date of the state is %q, want %q", got, date)
	}
	if len(shared) != 1 {
		t.Errorf("the labels of the shared change became %v", shared)
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	for marks, want := range map[string]v1beta1.LifecycleState{"": "PreparingNormal", "L": "PreparingNormal", "LF": ""} {
		snap := observe("preNormal", "", marks)
		if got := lifecycle.First(snap.Spec, snap.Replicas[0].Pod); got != want {
			t.Errorf("First(%q) = %q, want %q", marks, got, want)
		}
	}
	snap := observe("preDelete", "", "")
	if got := lifecycle.First(snap.Spec, snap.Replicas[0].Pod); got != "" {
		t.Errorf("First() without the hook = %q", got)
	}
}

// TestNamedPodStaysPrepared has a pod that is prepared for its deletion, and that is to be deleted later.
func TestNamedPodStaysPrepared(t *testing.T) {
	t.Parallel()
	for named, want := range map[bool]string{true: "hold web-a: lifecycle hook preDelete waits until label example.com/hook=on is gone\n", false: "set web-a to Normal (it is no longer to be deleted)\n"} {
		snap := observe("preDelete", "PreparingDelete", "L")
		snap.Replicas[0].Specified = named
		p := planned(snap, "")
		if diff := cmp.Diff(want, p.String()); diff != "" {
			t.Errorf("named %t: plan (-want +got):\n%s", named, diff)
		}
	}
}
