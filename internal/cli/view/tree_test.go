// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"charm.land/bubbles/v2/progress"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/revision"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// testSet returns a set in the middle of a rollout.
func testSet() *v1beta1.RollSet {
	return &v1beta1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
		Spec:       v1beta1.RollSetSpec{Replicas: new(int32(3)), MinReadySeconds: 10},
		Status: v1beta1.RollSetStatus{
			ObservedGeneration: 2, CurrentRevision: "web-a", UpdateRevision: "web-b", Replicas: 3, UpdatedReplicas: 1,
			Conditions: []metav1.Condition{{
				Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonRollingUpdate, Message: "1 of 3 pods updated\x1b[31m",
			}},
		},
	}
}

// testPod returns a pod that became ready a while ago; 0 means not ready.
func testPod(name, at string, readyFor time.Duration) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{v1beta1.RevisionLabel: at}, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		},
		Spec:   corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}},
	}
	if readyFor > 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-readyFor)),
		})
	}
	return pod
}

func testObjects() objects {
	terminating := testPod("web-2", "web-a", time.Hour)
	terminating.DeletionTimestamp = &metav1.Time{Time: now}
	return objects{
		set: testSet(),
		revisions: []*appsv1.ControllerRevision{
			{ObjectMeta: metav1.ObjectMeta{Name: "web-a"}, Revision: 1},
			{ObjectMeta: metav1.ObjectMeta{Name: "web-b", Annotations: map[string]string{revision.CompletedAnnotation: "0"}}, Revision: 2},
		},
		pods: []*corev1.Pod{
			testPod("web-0", "web-a", time.Hour), testPod("web-1", "web-a", time.Second), terminating, testPod("web-3", "web-b", 0),
		},
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	want := []string{
		"rollset/web  RollingUpdate  3 desired, 1 updated, 0 ready, 0 available, 3 total",
		"1 of 3 pods updated",
		"├─ revision 2 web-b (update, not proven)  1 not ready",
		"│  └─ ○ web-3  not ready (surge)  60m  0 restarts  node-1  not started yet on node node-1",
		"└─ revision 1 web-a (current, proven)  1 available, 1 ready, 1 terminating",
		"   ├─ ✔ web-0  available          60m  0 restarts  node-1",
		"   ├─ ● web-1  ready              60m  0 restarts  node-1  ready for less than 10s",
		"   └─ ⊘ web-2  terminating        60m  0 restarts  node-1  Terminating on node node-1",
	}
	o := testObjects()
	o.pods[3].Labels[v1beta1.SurgeLabel] = "true"
	got := grow(o, now).lines(0, 0)
	for i := range got {
		got[i] = ansi.Strip(got[i])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSteps draws the steps of rollouts in every phase.
func TestSteps(t *testing.T) {
	t.Parallel()
	for want, rollout := range map[string]*v1beta1.RolloutStatus{
		"": nil,
		"steps  ▶ 1 rolling  ○ 25%  ○ 25%  ○ all":   {Step: 1, Steps: 3, Phase: v1beta1.RolloutRolling},
		"steps  ▶ 1 soaking  ○ 25%  ○ 25%  ○ all":   {Step: 1, Steps: 3, Phase: v1beta1.RolloutSoaking},
		"steps  ✔ 1  ▶ 25% gated  ○ 25%  ○ all":     {Step: 2, Steps: 3, Phase: v1beta1.RolloutGated},
		"steps  ✔ 1  ✔ 25%  ▶ 25% paused  ○ all":    {Step: 3, Steps: 3, Phase: v1beta1.RolloutPaused},
		"steps  ✔ 1  ✖ 25% failed  ○ 25%  ○ all":    {Step: 2, Steps: 3, Phase: v1beta1.RolloutFailed},
		"steps  ✔ 1  ✔ 25%  ✔ 25%  ▶ all rolling":   {Step: 4, Steps: 3, Phase: v1beta1.RolloutRolling},
		"steps  ○ 1  ○ 25%  ○ 25%  ○ all  given up": {Step: 0, Steps: 3, Phase: v1beta1.RolloutFailed},
	} {
		o := testObjects()
		for _, size := range []string{"1", "25%", "25%"} {
			rolling := &o.set.Spec.UpdateStrategy.RollingUpdate
			rolling.Steps = append(rolling.Steps, v1beta1.RolloutStep{Updated: intstr.Parse(size)})
		}
		o.set.Status.Rollout = rollout
		if got := ansi.Strip(grow(o, now).steps()); got != want {
			t.Errorf("%+v:\n%s\nwant\n%s", rollout, got, want)
		}
		o.set.Spec.UpdateStrategy.RollingUpdate.Steps = nil // the steps were removed, and the controller has not seen it yet
		if got := grow(o, now).steps(); got != "" {
			t.Errorf("without steps: %s", got)
		}
	}
}

// TestWatchSteps watches a rollout in steps: each phase is a line, and a screen shows the step.
func TestWatchSteps(t *testing.T) {
	t.Parallel()
	told := map[string]string{}
	o := objects{set: testSet()}
	o.set.Spec.UpdateStrategy.RollingUpdate.Steps = []v1beta1.RolloutStep{{Updated: intstr.FromInt32(1)}}
	at := func(reason, message string) []string {
		o.set = o.set.DeepCopy()
		o.set.Status.Conditions[0].Reason, o.set.Status.Conditions[0].Message = reason, message
		return changes(told, grow(o, now))
	}
	for _, tell := range [][2]string{
		{v1beta1.ReasonRollingUpdate, "step 1 of 1: 0 of 3 pods updated; waiting for web-2: not started yet"},
		{v1beta1.ReasonSoaking, "step 1 of 1: 1 of 3 pods updated; soaking until 08:31:07Z"},
		{v1beta1.ReasonAwaitingPromotion, "step 1 of 1: 1 of 3 pods updated; waiting for annotation apps.rollset.dev/promote=web-b/1"},
	} {
		if diff := cmp.Diff([]string{"rollset/web " + tell[0] + ": " + tell[1]}, at(tell[0], tell[1])); diff != "" {
			t.Error(diff)
		}
	}
	o.set.Status.Rollout = &v1beta1.RolloutStatus{Step: 1, Steps: 1, Phase: v1beta1.RolloutPaused}
	screen := &screen{tree: grow(o, now), bar: progress.New(), width: 120, height: 20}
	lines := strings.Split(ansi.Strip(screen.View().Content), "\n")
	if len(lines) < 4 || lines[3] != "steps  ▶ 1 paused  ○ all" {
		t.Errorf("the screen shows\n%s", strings.Join(lines, "\n"))
	}
}

// TestSmallScreens draws a large set on screens of all sizes. It never has more lines or columns than the screen.
func TestSmallScreens(t *testing.T) {
	t.Parallel()
	o := testObjects()
	o.pods = nil
	for i := range 500 {
		readyFor := time.Hour
		if i%100 == 7 {
			readyFor = 0
		}
		o.pods = append(o.pods, testPod(fmt.Sprintf("web-%d", i), []string{"web-a", "web-b"}[i%2], readyFor))
	}
	for _, height := range []int{10, 24, 50, 200} {
		for _, width := range []int{1, 20, 80, 200} {
			lines := grow(o, now).lines(height, width)
			if len(lines) > height {
				t.Errorf("%d lines on a screen of %d", len(lines), height)
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > width {
					t.Errorf("a line of %d columns on a screen of %d: %q", ansi.StringWidth(line), width, line)
				}
			}
			if text := strings.Join(lines, "\n"); width >= 80 && !strings.Contains(text, "more") {
				t.Errorf("nothing is folded on %d lines:\n%s", height, text)
			}
		}
	}
	// Pods that are not as they should be are shown first.
	text := strings.Join(grow(o, now).lines(20, 200), "\n")
	if got := strings.Count(text, "○"); got < 5 {
		t.Errorf("%d of 5 pods that are not ready are shown:\n%s", got, text)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	told := map[string]string{}
	o := testObjects()
	want := []string{
		"pod/web-0 revision 1 web-a: available",
		"pod/web-1 revision 1 web-a: ready: ready for less than 10s",
		"pod/web-2 revision 1 web-a: terminating: Terminating on node node-1",
		"pod/web-3 revision 2 web-b: not ready: not started yet on node node-1",
		"rollset/web RollingUpdate: 1 of 3 pods updated",
	}
	if diff := cmp.Diff(want, changes(told, grow(o, now))); diff != "" {
		t.Error(diff)
	}
	if again := changes(told, grow(o, now)); len(again) > 0 {
		t.Errorf("told twice: %v", again)
	}
	o.pods = o.pods[:3]
	if diff := cmp.Diff([]string{"pod/web-3 gone"}, changes(told, grow(o, now))); diff != "" {
		t.Error(diff)
	}
}

// TestRevisionsToGoBackTo distinguishes the revision that diff compares with from the one that undo goes back to, which is
// proven.
func TestRevisionsToGoBackTo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ current, update, completed, compared, undone string }{
		"no rollout":                 {"web-c", "web-c", "111", "web-b", "web-b"},
		"a rollout":                  {"web-a", "web-c", "110", "web-a", "web-a"},
		"after going back":           {"web-a", "web-a", "111", "web-c", "web-c"},
		"a current one that is gone": {"web-x", "web-c", "110", "", "web-b"},
		"one that never worked":      {"web-c", "web-c", "101", "web-b", "web-a"},
		"after going back from one that never worked": {"web-b", "web-b", "110", "web-c", "web-a"},
		"nothing that ever worked":                    {"web-a", "web-c", "000", "web-a", ""},
	} {
		var revisions []*appsv1.ControllerRevision
		for i, done := range test.completed {
			r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-" + string("abc"[i])}, Revision: int64(i + 1)}
			r.Annotations = map[string]string{revision.CompletedAnnotation: string(done)}
			revisions = append(revisions, r)
		}
		set := &v1beta1.RollSet{Status: v1beta1.RollSetStatus{CurrentRevision: test.current, UpdateRevision: test.update}}
		var got [2]string
		if r, err := previous(set, revisions); err == nil {
			got[0] = r.Name
		}
		if r, err := LastProven(set, revisions); err == nil {
			got[1] = r.Name
		}
		if want := [2]string{test.compared, test.undone}; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A new set has no current revision until all its pods were available.
func TestRoles(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{Status: v1beta1.RollSetStatus{CurrentRevision: "web-a", UpdateRevision: "web-a"}}
	for mark, want := range map[string]string{"0": " (update, not proven)", "1": " (current, proven)"} {
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-a", Annotations: map[string]string{revision.CompletedAnnotation: mark}}}
		if got := inParentheses(role(set, r), proven(r)); got != want {
			t.Errorf("completed at %s:%s, want%s", mark, got, want)
		}
	}
}

// A tree that is higher than the terminal is folded, on a screen of its own: its pictures leave no lines behind.
func TestScreensThatAreTooSmall(t *testing.T) {
	t.Parallel()
	o := testObjects()
	o.pods = nil
	for i := range 40 {
		o.pods = append(o.pods, testPod(fmt.Sprintf("web-%d", i), []string{"web-a", "web-b"}[i%2], time.Hour))
	}
	m := &screen{tree: grow(o, now), bar: progress.New(), width: 80}
	if view := m.View(); view.Content != "" {
		t.Errorf("before the size of the terminal is known, it draws\n%s", view.Content)
	}
	for _, m.height = range []int{24, 15, 5} {
		view := m.View()
		if lines := strings.Count(view.Content, "\n") + 1; lines >= m.height || !view.AltScreen {
			t.Errorf("%d lines on a terminal of %d, on a screen of its own: %t", lines, m.height, view.AltScreen)
		}
	}
}
