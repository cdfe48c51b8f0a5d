// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/snapshot"
)

// SubResource implements client.SubResourceClientConstructor.
func (s *server) SubResource(name string) client.SubResourceClient {
	return &subresource{server: s, name: name}
}

// subresource is one subresource of the server's objects.
type subresource struct {
	client.SubResourceClient

	server *server
	name   string
}

// Patch implements client.SubResourceWriter.
func (s *subresource) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.server.write("patch "+s.name, object, func() error {
		s.server.store(object)
		return nil
	})
}

// running adds a pod to the server.
func (w *world) running(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:v1"}}
	w.server.store(pod)
	return pod.DeepCopy()
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	a, b := w.running("web-a"), w.running("web-b")
	change := inplace.Change{Images: map[string]string{"app": "app:v2"}, Restarts: []string{"app"}}
	result := w.apply(t,
		action.CloseGate{Pod: a}, action.UpdateInPlace{Pod: a, Revision: revision, Change: change},
		action.UpdateInPlace{Pod: b, Revision: revision, Change: change},
		action.Resize{Pod: a, Revision: revision, Patch: []byte("{}")}, action.OpenGate{Pod: a},
		action.SetState{Pod: a, State: v1beta1.LifecycleNormal},
	)
	want := []string{
		"patch status web-a", "patch web-a", "patch web-b", "patch resize web-a", "patch status web-a", "patch web-a",
	}
	if diff := cmp.Diff(want, w.server.log); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"SuccessfulUpdate: Updated 2 pods web-a and web-b in place (images of app)"}, w.notes.all); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if result.Updates.Done != len(want) || result.Updates.Err != nil {
		t.Errorf("result %+v", result.Updates)
	}
	behind := expectations.Cache{Synced: map[schema.GroupKind]string{expectations.PodKind(): "1"}}
	if met, _ := w.store.Met("set", behind); met {
		t.Error("nothing is expected of the cache after the writes")
	}
}

func TestUpdateFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err error
		// seen is the resourceVersion that the cache shows; empty if it is the newest.
		seen           string
		do             func(*corev1.Pod) action.Action
		wantFailed     int
		wantInfeasible bool
		wantUnsettled  bool
	}{
		"a pod that is gone is no failure": {
			err: apierrors.NewNotFound(schema.GroupResource{}, "web-a"), do: closing,
		},
		"nor is one that has changed": {
			err: apierrors.NewConflict(schema.GroupResource{}, "web-a", nil), seen: "0", do: closing,
		},
		"a conflict over a pod that has not changed is a refusal": {
			err: apierrors.NewConflict(schema.GroupResource{}, "web-a", nil), do: closing, wantFailed: 1,
		},
		"a webhook that does not answer is, and nothing may have happened": {
			err: errWebhook, do: closing, wantFailed: 1,
		},
		"a refusal is":                         {err: errDenied, do: closing, wantFailed: 1},
		"what may have happened is waited for": {err: errServer, do: closing, wantFailed: 1, wantUnsettled: true},
		"a resize that a policy refuses is": {
			err: errDenied, do: resizing, wantFailed: 1, wantInfeasible: true,
		},
		"one that the node cannot give is impossible": {
			err: errTooLarge, do: resizing, wantInfeasible: true,
		},
		"so is one that makes no valid pod": {
			err: errInvalid, do: resizing, wantInfeasible: true,
		},
		"a resize that the manager may not make is not": {
			err: errRights, do: resizing, wantFailed: 1,
		},
		"nor is one with an unknown result": {
			err: errCut, do: resizing, wantFailed: 1, wantUnsettled: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(v1beta1.RandomIdentity)
			pod := w.running("web-a")
			w.server.fail = func(string, client.Object) error { return tt.err }
			if tt.seen != "" {
				pod = pod.DeepCopy()
				pod.ResourceVersion = tt.seen
			}
			result := w.apply(t, tt.do(pod))
			if result.Updates.Failed != tt.wantFailed || result.Updates.Done != 0 {
				t.Errorf("result %+v, want %d failed", result.Updates, tt.wantFailed)
			}
			if tt.wantFailed > 0 && !errors.Is(result.Updates.Err, tt.err) {
				t.Errorf("error %v does not wrap %v", result.Updates.Err, tt.err)
			}
			if got := slices.ContainsFunc(result.Attempts, attempt.Result.RefusesResize); got != tt.wantInfeasible {
				t.Errorf("infeasible: %v", result.Attempts)
			}
			met, remaining := w.store.Met("set", expectations.Cache{Pods: []*corev1.Pod{pod}})
			if met == tt.wantUnsettled || tt.wantUnsettled && remaining > 10*time.Second {
				t.Errorf("expectations met: %v, %v remaining", met, remaining)
			}
		})
	}
}

func closing(pod *corev1.Pod) action.Action { return action.CloseGate{Pod: pod} }

func resizing(pod *corev1.Pod) action.Action { return action.Resize{Pod: pod, Patch: []byte("{}")} }

// TestBuildGates checks which pods get the readiness gate and the first state of a lifecycle hook.
func TestBuildGates(t *testing.T) {
	t.Parallel()
	gate := []corev1.PodReadinessGate{{ConditionType: v1beta1.InPlaceUpdateReady}}
	hook := &v1beta1.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "on"}}
	withdrawing := hook.DeepCopy()
	withdrawing.MarkPodNotReady = true
	tests := map[string]struct {
		policy    v1beta1.PodUpdatePolicy
		lifecycle *v1beta1.Lifecycle
		declared  []corev1.PodReadinessGate
		wantGates []corev1.PodReadinessGate
		wantState string
	}{
		"none without reason":                  {policy: v1beta1.RecreatePod},
		"the gate for updates in place":        {policy: v1beta1.InPlaceOnlyPod, wantGates: gate},
		"not twice":                            {policy: v1beta1.InPlaceIfPossiblePod, declared: gate, wantGates: gate},
		"the gate for hooks that close it":     {lifecycle: &v1beta1.Lifecycle{PreDelete: withdrawing}, wantGates: gate},
		"and not for others":                   {lifecycle: &v1beta1.Lifecycle{PreDelete: hook}},
		"the state of the hook before service": {lifecycle: &v1beta1.Lifecycle{PreNormal: hook}, wantState: "PreparingNormal"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(v1beta1.RandomIdentity)
			w.set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = tt.policy
			w.set.Spec.Lifecycle = tt.lifecycle
			w.snap.Update.Template.Spec.ReadinessGates = tt.declared
			pod := Build(w.set, w.snap.Update, "a")
			if diff := cmp.Diff(tt.wantGates, pod.Spec.ReadinessGates); diff != "" {
				t.Errorf("gates (-want +got):\n%s", diff)
			}
			if got := pod.Labels[v1beta1.LifecycleStateLabel]; got != tt.wantState {
				t.Errorf("state %q, want %q", got, tt.wantState)
			}
		})
	}
}

func TestUsersAreToldWhosePodsAre(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	w.server.store(w.set.DeepCopy())
	w.apply(t, action.Adopt{Pod: w.running("web-a")}, action.Adopt{Pod: w.running("web-b")}, action.Release{Pod: w.running("web-c")})
	want := []string{
		"Adopted: Adopted 2 pods web-a and web-b, which no controller had",
		"Released: Released pod web-c, which the selector does not match",
	}
	if diff := cmp.Diff(want, w.notes.all); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestUsersAreToldWhyPodsGo(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	reasons := []string{"recreate at web-2", "its ordinal is not in use", "ended: Failed", "recreate at web-2", "one", "another"}
	var plan []action.Action
	for i, reason := range reasons {
		a := action.Delete{Pod: w.running("web-" + string(rune('a'+i))), Reason: reason}
		if reason == reasons[0] {
			a.To = "web-2"
		}
		plan = append(plan, a)
	}
	w.apply(t, plan...)
	want := []string{"SuccessfulDelete: Deleted 6 pods web-a, web-b, web-c, web-d, web-e and 1 more " +
		"(recreate at revision web-2; its ordinal is not in use; ended: Failed; and 2 more reasons)"}
	if diff := cmp.Diff(want, w.notes.all); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestUsersAreToldWhichHooksArePassed(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	passed := snapshot.Passed{Hook: "preNormal", Seconds: 60, Why: "label example.com/hook=on is missing"}
	w.apply(t,
		action.SetState{Pod: w.running("web-a"), State: v1beta1.LifecycleNormal, Passed: passed},
		action.SetState{Pod: w.running("web-b"), State: v1beta1.LifecycleNormal},
		action.UpdateInPlace{Pod: w.running("web-c"), Revision: "web-2", Passed: snapshot.Passed{Hook: "inPlaceUpdate", Seconds: 5}},
		action.Delete{Pod: w.running("web-d"), Reason: "why", Passed: snapshot.Passed{Hook: "preDelete", Seconds: 1}},
	)
	want := []string{
		"SuccessfulDelete: Deleted pod web-d (why)",
		"SuccessfulUpdate: Updated pod web-c in place (metadata)",
		"HookTimedOut: Went on with 3 pods web-d, web-a and web-c without lifecycle hook preDelete, whose limit of 1 seconds has passed; " +
			"without lifecycle hook preNormal, whose limit of 60 seconds has passed: label example.com/hook=on is missing; " +
			"without lifecycle hook inPlaceUpdate, whose limit of 5 seconds has passed",
	}
	if diff := cmp.Diff(want, w.notes.all); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestStatesAreDated checks that the patch of a state says since when the pod is in it.
func TestStatesAreDated(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.RandomIdentity)
	writer := &writer{snap: &w.snap}
	pod := w.running("web-a")
	now := w.snap.Now.UTC().Format(time.RFC3339)
	for passed, want := range map[snapshot.Passed]string{{}: "Normal " + now, {Hook: "preNormal", Seconds: 60}: "Normal " + now + " preNormal 60"} {
		c, err := updater{writer}.changeOf(action.SetState{Pod: pod, State: v1beta1.LifecycleNormal, Passed: passed})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(c.patch), `"lifecycle.rollset.dev/since":"`+want+`"`) {
			t.Errorf("the patch %s does not have %q", c.patch, want)
		}
	}
}
