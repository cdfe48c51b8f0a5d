// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// waiting returns a set with a reason of Progressing and a message.
func waiting(reason, message string, change ...func(*v1beta1.RollSet)) *v1beta1.RollSet {
	set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Generation: 3}}
	set.Status.ObservedGeneration = 3
	set.Status.CurrentRevision, set.Status.UpdateRevision = "web-a", "web-b"
	set.Status.Conditions = []metav1.Condition{
		{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message},
		{Type: v1beta1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: reason, Message: message},
	}
	set.Spec.UpdateStrategy.RollingUpdate.Steps = []v1beta1.RolloutStep{
		{Updated: intstr.FromInt32(1), Pause: true, Gates: []v1beta1.StepGate{{ConditionType: "Smoke"}, {ConditionType: "Errors"}}},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

// at puts a set into a phase of its step.
func at(phase v1beta1.RolloutPhase) func(*v1beta1.RollSet) {
	return func(set *v1beta1.RollSet) {
		set.Status.Rollout = &v1beta1.RolloutStatus{Revision: "web-b", Step: 1, Steps: 1, Phase: phase, Until: &metav1.Time{Time: now}}
	}
}

// with adds a condition.
func with(kind string, status metav1.ConditionStatus, reason, message string) func(*v1beta1.RollSet) {
	return func(set *v1beta1.RollSet) {
		set.Status.Conditions = append(set.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

// TestCauses names what a set waits for, each cause once, with what lifts it.
func TestCauses(t *testing.T) {
	t.Parallel()
	held := func(kind action.HoldKind, reason string, pods ...string) []hold {
		var holds []hold
		for _, pod := range pods {
			h := action.Hold{Kind: kind, Subject: pod}
			holds = append(holds, hold{Subject: pod, Kind: string(kind), Reason: strings.ReplaceAll(reason, "POD", pod), LiftedBy: liftedBy(waiting("", ""), h)})
		}
		return holds
	}
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no room",
		}}}}
	}
	for name, test := range map[string]struct {
		set   *v1beta1.RollSet
		holds []hold
		pods  []*corev1.Pod
		want  []string // kind, number of pods, reason, what lifts it
	}{
		"a gate": {
			waiting(v1beta1.ReasonAwaitingGate, "", at(v1beta1.RolloutGated), with("Smoke", metav1.ConditionTrue, "Good", "")), nil, nil,
			[]string{"gate 0 step 1 of 1 waits for gate Errors: kubectl rollset gate web Errors -- COMMAND, or who else writes the condition"},
		},
		"a gate that failed": {
			waiting(v1beta1.ReasonStepFailed, "", at(v1beta1.RolloutFailed), with("Smoke", metav1.ConditionTrue, "Good", ""), with("Errors", metav1.ConditionFalse, "Bad", "3%")), nil, nil,
			[]string{"gate 0 step 1 of 1: gate Errors is False: 3%: kubectl rollset gate web Errors -- COMMAND, or who else writes the condition"},
		},
		"a promotion": {
			waiting(v1beta1.ReasonAwaitingPromotion, "", at(v1beta1.RolloutPaused)), nil, nil,
			[]string{"promotion 0 step 1 of 1 waits until somebody promotes it: kubectl rollset promote web"},
		},
		"a soak": {
			waiting(v1beta1.ReasonSoaking, "", at(v1beta1.RolloutSoaking)), nil, nil,
			[]string{"soak 0 step 1 of 1 soaks until 2026-01-02 03:04:05Z: time, or kubectl rollset promote web --full"},
		},
		"a pause in a step": {
			waiting(v1beta1.ReasonPaused, "", at(v1beta1.RolloutPaused), func(set *v1beta1.RollSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = true }), nil, nil,
			[]string{"pause 0 the rollout is paused: no pod moves to another revision: kubectl rollset resume web"},
		},
		"a verdict": {
			waiting(v1beta1.ReasonRolledBack, "revision web-b was aborted"), nil, nil,
			[]string{"verdict 0 revision web-b was aborted: kubectl rollset retry web, or another template"},
		},
		"a partition": {
			waiting(v1beta1.ReasonPartitionReached, "1 of 3 pods updated"), nil, nil,
			[]string{"partition 0 1 of 3 pods updated: kubectl rollset set partition web 0"},
		},
		"a quota": {
			waiting(v1beta1.ReasonScaling, "", with(v1beta1.ConditionReplicaFailure, metav1.ConditionTrue, v1beta1.ReasonFailedCreate, `pods "web-x" is forbidden: exceeded quota: few, requested: pods=1`)), nil, nil,
			[]string{`quota 0 pods "web-x" is forbidden: exceeded quota: few, requested: pods=1: a larger quota, or fewer pods that use it: kubectl describe resourcequota few -n shop`},
		},
		"a template that is refused, by the pods that it holds": {
			waiting(v1beta1.ReasonInvalidTemplate, "", with(v1beta1.ConditionReplicaFailure, metav1.ConditionTrue, v1beta1.ReasonInvalidTemplate, "no such volume")),
			held(action.HeldByPreflight, "no such volume", "web-0", "web-1"), nil,
			[]string{"preflight 2 no such volume: a template that the API server accepts, or another policy: kubectl rollset diff web"},
		},
		"holds that differ in the pod only": {
			waiting(v1beta1.ReasonRollingUpdate, ""), held(action.HeldByOnDelete, "POD waits to be deleted", "web-1", "web-0", "web-2"), nil,
			[]string{"on-delete 3 the pod waits to be deleted: kubectl rollset delete-pod web-0 web-1 web-2"},
		},
		"holds with one reason, which names a pod of them": {
			waiting(v1beta1.ReasonNewRevision, ""), held(action.HeldByBudget, "web-0 and 1 more are not available", "web-0", "web-1"), nil,
			[]string{"budget 2 web-0 and 1 more are not available: more pods becoming available, or a larger updateStrategy.rollingUpdate.maxUnavailable"},
		},
		"one hold": {
			waiting(v1beta1.ReasonRollingUpdate, ""), held(action.HeldByOnDelete, "POD waits to be deleted", "web-1"), nil,
			[]string{"on-delete 1 web-1 waits to be deleted: kubectl rollset delete-pod web-1"},
		},
		"pods without a node": {
			waiting(v1beta1.ReasonRollingUpdate, ""), nil,
			[]*corev1.Pod{pod("web-0"), pod("web-1")},
			[]string{"pod 2 Unschedulable: no room: the pod becoming ready; kubectl describe pod web-0 -n shop"},
		},
	} {
		got := []string{}
		for _, c := range causesOf(&snapshot.Objects{Set: test.set, Pods: test.pods, Now: now}, test.holds) {
			got = append(got, fmt.Sprintf("%s %d %s: %s", c.Kind, len(c.Pods), c.Reason, c.LiftedBy))
		}
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s:\ngot  %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(test.want, "\n     "))
		}
	}
}

// TestNextWrites leaves out what the API server refused, and names pods.
func TestNextWrites(t *testing.T) {
	t.Parallel()
	p := &action.Plan{}
	for _, id := range []string{"1", "10"} {
		p.Add(action.Create{ID: id, Revision: "web-b", Reason: "missing"})
	}
	for want, set := range map[string]*v1beta1.RollSet{
		"create web-1 at web-b (missing), create web-10 at web-b (missing)": waiting(v1beta1.ReasonScaling, ""),
		"create web-1 at web-b (missing)":                                   waiting(v1beta1.ReasonScaling, "", with(v1beta1.ConditionReplicaFailure, metav1.ConditionTrue, v1beta1.ReasonNameConflict, "web-10: the name is taken")),
		"":                                                                  waiting(v1beta1.ReasonScaling, "", with(v1beta1.ConditionReplicaFailure, metav1.ConditionTrue, v1beta1.ReasonInvalidTemplate, "pods of revision web-b: create pod web-7: no")),
	} {
		if got := strings.Join(nextWrites(set, p), ", "); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	first := waiting(v1beta1.ReasonProgressDeadlineExceeded, "no progress", func(set *v1beta1.RollSet) { set.Status.CurrentRevision = "web-b" })
	if c := ofVerdicts(first); len(c) != 1 || c[0].LiftedBy != "kubectl edit rollset web, or what the causes below name" {
		t.Errorf("of a set with one revision: %+v", c)
	}
}

// A spec that no controller has observed comes before everything else.
func TestUnobserved(t *testing.T) {
	t.Parallel()
	set := waiting(v1beta1.ReasonComplete, "3 of 3 pods updated")
	set.Generation = 4
	if c := unobserved(set); !strings.Contains(c.Reason, "generation 4, and the controller has observed generation 3") {
		t.Errorf("%+v", c)
	}
}

// TestTextFits prints long reasons and many pods: no line is longer than a terminal is wide.
func TestTextFits(t *testing.T) {
	t.Parallel()
	a := answer{Set: "web", Waiting: "RollingUpdate: " + strings.Repeat("0/10 nodes are available ", 20)}
	for i := range 10 {
		a.Next = append(a.Next, fmt.Sprintf("create pod web-%d because %s", i, strings.Repeat("it is missing ", 10)))
	}
	pods := make([]string, 50)
	for i := range pods {
		pods[i] = fmt.Sprintf("web-with-a-rather-long-name-%d", i)
	}
	a.Causes = []cause{{Kind: "pod", Pods: pods, Reason: strings.Repeat("x", 300), LiftedBy: strings.Repeat("kubectl rollset undo web ", 9)}, {Kind: "pause", Reason: "short", LiftedBy: "time"}, {Kind: "guard", Reason: "1 unavailable at revision with the even rather long name generation-of-web-9, no more are moved"}}
	text := a.text()
	for line := range strings.Lines(text) {
		if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, name := range append(pods[:maxShown], "generation-of-web-9") {
		if strings.Contains(text, name) {
			continue
		}
		t.Errorf("%s is broken in\n%s", name, text)
	}
	for _, want := range []string{"50 pods (web-with-a-rather-long-name-0,", "and 46 more", "next: 6 more writes", "\npause: short\n  lifted by: time\n"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
