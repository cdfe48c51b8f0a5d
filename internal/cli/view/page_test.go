// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"charm.land/bubbles/v2/progress"
	"github.com/charmbracelet/x/ansi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/cli/session"
	"rollset.dev/rollset/internal/model/revision"
)

var update = flag.Bool("update", false, "Write what a terminal shows into the page of the plugin.")

const (
	page = "../../../docs/kubectl-plugin.md"
	// above and below are the text around the picture on the page.
	above = "$ kubectl rollset get web -w\n"
	below = "```\n"
)

// inTheMiddle returns a rollout of six pods with maxUnavailable 2.
func inTheMiddle() objects {
	o := objects{
		set: &v1beta1.RollSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
			Spec:       v1beta1.RollSetSpec{Replicas: new(int32(6))},
			Status: v1beta1.RollSetStatus{
				ObservedGeneration: 2, CurrentRevision: "web-a", UpdateRevision: "web-b", Replicas: 5, UpdatedReplicas: 4, ReadyReplicas: 4,
				AvailableReplicas: 4, UpdatedAvailableReplicas: 3,
				Conditions: []metav1.Condition{{
					Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonRollingUpdate,
					Message: "4 of 6 pods updated; waiting for web-x7k2p: Unschedulable: 0/10 nodes are available: 10 Insufficient cpu.",
				}},
			},
		},
	}
	for i, name := range []string{"web-a", "web-b"} {
		data := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"web:%d.0"}]}}}}`, i+1)
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: int64(i + 1)}
		r.Data.Raw = []byte(data)
		r.Annotations = map[string]string{revision.CompletedAnnotation: strconv.Itoa(1 - i)} // the second is not complete yet
		o.revisions = append(o.revisions, r)
	}
	pod := func(name, at, node string, old, readyFor time.Duration) *corev1.Pod {
		p := testPod(name, at, readyFor)
		p.CreationTimestamp, p.Spec.NodeName = metav1.NewTime(now.Add(-old)), node
		o.pods = append(o.pods, p)
		return p
	}
	pod("web-m4t8z", "web-b", "node-3", 90*time.Second, time.Minute)
	pod("web-84jns", "web-b", "node-1", 80*time.Second, time.Minute)
	pod("web-qz5lw", "web-b", "node-2", 50*time.Second, 20*time.Second)
	stuck := pod("web-x7k2p", "web-b", "", 40*time.Second, 0)
	stuck.Status.Phase = corev1.PodPending
	stuck.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/10 nodes are available: 10 Insufficient cpu.",
	}}
	pod("web-bcdfg", "web-a", "node-1", 26*time.Hour, 25*time.Hour)
	pod("web-k2p9v", "web-a", "node-3", 26*time.Hour, 25*time.Hour).DeletionTimestamp = &metav1.Time{Time: now}
	return o
}

// TestPageShowsTheScreen compares the page with what a terminal of 120 columns shows; -update writes it anew.
func TestPageShowsTheScreen(t *testing.T) {
	t.Parallel()
	s := session.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}, clocktesting.NewFakeClock(now))
	m := &screen{get: &get{session: s}, tree: grow(inTheMiddle(), now), bar: progress.New(progress.WithWidth(barWidth)), width: 120, height: 30}
	var lines []string
	for line := range strings.Lines(ansi.Strip(m.View().Content)) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	want := strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), above)
	got, after, closed := strings.Cut(rest, below)
	if !ok || !closed {
		t.Fatalf("%s has no block that begins with %q", page, above)
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s shows\n%s\nand a terminal\n%s", page, got, want)
	}
	if err := os.WriteFile(page, []byte(before+above+want+below+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
