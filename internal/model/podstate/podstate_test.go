// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/podstate"
)

// epoch is when the tests' pods became ready.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// with returns a pod with conditions.
func with(conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Conditions: conditions}}
}

func is(t corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
	return corev1.PodCondition{Type: t, Status: status, LastTransitionTime: metav1.NewTime(epoch)}
}

func TestScheduled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"nothing is known":              {pod: with(), want: false},
		"the scheduler found no node":   {pod: with(is(corev1.PodScheduled, corev1.ConditionFalse)), want: false},
		"the scheduler says so":         {pod: with(is(corev1.PodScheduled, corev1.ConditionTrue)), want: true},
		"another client gave it a node": {pod: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}, want: true},
		"another condition is not this": {pod: with(is(corev1.PodReady, corev1.ConditionTrue)), want: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := podstate.Scheduled(tc.pod); got != tc.want {
				t.Errorf("Scheduled = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestReadySince(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod       *corev1.Pod
		wantSince time.Time
		want      bool
	}{
		"without the condition": {pod: with()},
		"False":                 {pod: with(is(corev1.PodReady, corev1.ConditionFalse))},
		"Unknown":               {pod: with(is(corev1.PodReady, corev1.ConditionUnknown))},
		"True":                  {pod: with(is(corev1.PodReady, corev1.ConditionTrue)), wantSince: epoch, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			since, got := podstate.ReadySince(tc.pod)
			if got != tc.want || !since.Equal(tc.wantSince) {
				t.Errorf("ReadySince = %v, %t; want %v, %t", since, got, tc.wantSince, tc.want)
			}
		})
	}
}

func TestContainersReady(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conditions []corev1.PodCondition
		want       bool
	}{
		"the condition is true":              {[]corev1.PodCondition{is(corev1.ContainersReady, corev1.ConditionTrue), is(corev1.PodReady, corev1.ConditionFalse)}, true},
		"it is false":                        {[]corev1.PodCondition{is(corev1.ContainersReady, corev1.ConditionFalse), is(corev1.PodReady, corev1.ConditionTrue)}, false},
		"a ready pod, as the cache keeps it": {[]corev1.PodCondition{is(corev1.PodReady, corev1.ConditionTrue)}, true},
		"an unready pod without it":          {[]corev1.PodCondition{is(corev1.PodReady, corev1.ConditionFalse)}, false},
		"a pod without conditions":           {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: c.conditions}}
			if got := podstate.ContainersReady(pod); got != c.want {
				t.Errorf("ready is %t, want %t", got, c.want)
			}
		})
	}
}

func TestReturning(t *testing.T) {
	t.Parallel()
	const own, other = corev1.PodConditionType("example.com/own"), corev1.PodConditionType("example.com/other")
	turned := func(kind corev1.PodConditionType, status corev1.ConditionStatus, seconds int64) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.Unix(seconds, 0)}
	}
	containers := turned(corev1.ContainersReady, corev1.ConditionTrue, 1)
	notReady := turned(corev1.PodReady, corev1.ConditionFalse, 5)
	for name, c := range map[string]struct {
		conditions []corev1.PodCondition
		want       bool
	}{
		"the gate was opened after": {[]corev1.PodCondition{containers, notReady, turned(own, corev1.ConditionTrue, 6), turned(other, corev1.ConditionTrue, 2)}, true},
		"it was open before":        {[]corev1.PodCondition{containers, notReady, turned(own, corev1.ConditionTrue, 4), turned(other, corev1.ConditionTrue, 2)}, false},
		"another gate is closed":    {[]corev1.PodCondition{containers, notReady, turned(own, corev1.ConditionTrue, 6), turned(other, corev1.ConditionFalse, 2)}, false},
		"another gate is not set":   {[]corev1.PodCondition{containers, notReady, turned(own, corev1.ConditionTrue, 6)}, false},
		"a container is not ready":  {[]corev1.PodCondition{notReady, turned(own, corev1.ConditionTrue, 6), turned(other, corev1.ConditionTrue, 2)}, false},
		"it is ready":               {[]corev1.PodCondition{containers, turned(corev1.PodReady, corev1.ConditionTrue, 7), turned(own, corev1.ConditionTrue, 6), turned(other, corev1.ConditionTrue, 2)}, false},
		"it is ready for longer":    {[]corev1.PodCondition{containers, turned(corev1.PodReady, corev1.ConditionTrue, 5), turned(own, corev1.ConditionTrue, 6), turned(other, corev1.ConditionTrue, 2)}, false},
		"its node says nothing":     {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: c.conditions}}
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: own}, {ConditionType: other}}
			if got := podstate.Returning(pod); got != c.want {
				t.Errorf("returning is %t, want %t", got, c.want)
			}
		})
	}
}

// TestReturningWithoutGates has a pod without readiness gates: none was opened, whatever the times say.
func TestReturningWithoutGates(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse},
	}}}
	if podstate.Returning(pod) {
		t.Error("the pod counts as returning")
	}
}

func TestAvailable(t *testing.T) {
	t.Parallel()
	forever := math.MaxInt32 * time.Second
	for name, tc := range map[string]struct {
		since    time.Time
		minReady time.Duration
		now      time.Time
		want     bool
	}{
		"ready and nothing to wait for":      {since: epoch, now: epoch, want: true},
		"ready too short":                    {since: epoch, minReady: 10 * time.Second, now: epoch.Add(4 * time.Second)},
		"one tick too short":                 {since: epoch, minReady: time.Second, now: epoch.Add(time.Second - 1)},
		"ready exactly long enough":          {since: epoch, minReady: 10 * time.Second, now: epoch.Add(10 * time.Second), want: true},
		"ready in our future is ready now":   {since: epoch, minReady: 10 * time.Second, now: epoch.Add(-time.Hour)},
		"in our future, nothing to wait for": {since: epoch, now: epoch.Add(-time.Hour), want: true},
		"the longest minReady":               {since: epoch, minReady: forever, now: epoch.Add(time.Second)},
		"ready since an unknown time":        {minReady: time.Minute, now: epoch, want: true},
		"a negative minReady":                {since: epoch, minReady: -time.Second, now: epoch, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := podstate.Available(tc.since, tc.minReady, tc.now); got != tc.want {
				t.Errorf("Available = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestTerminatingAndFinished(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{}
	if podstate.Terminating(pod) || podstate.Finished(pod) {
		t.Error("an empty pod is neither terminating nor finished")
	}
	pod.DeletionTimestamp = new(metav1.NewTime(epoch))
	if !podstate.Terminating(pod) {
		t.Error("a pod with a deletionTimestamp is terminating")
	}
	for phase, want := range map[corev1.PodPhase]bool{
		corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false,
		corev1.PodFailed: true, corev1.PodSucceeded: true,
	} {
		pod.Status.Phase = phase
		if got := podstate.Finished(pod); got != want {
			t.Errorf("Finished in phase %s = %t, want %t", phase, got, want)
		}
	}
}

func TestRestarts(t *testing.T) {
	t.Parallel()
	status := func(name string, n int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, RestartCount: n}
	}
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{
			{Name: "migrate"},
			{Name: "fetch", RestartPolicy: new(corev1.ContainerRestartPolicyOnFailure)},
			{Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		}},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{status("migrate", 100), status("fetch", 9), status("proxy", 3), status("unheard-of", 50)},
			ContainerStatuses:     []corev1.ContainerStatus{status("app", 2), status("log", 1), status("odd", -7)},
		},
	}
	if got := podstate.Restarts(pod); got != 6 {
		t.Errorf("Restarts = %d, want 6: 2 of app, 1 of log and 3 of the sidecar", got)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status("a", math.MaxInt32), status("b", math.MaxInt32)}
	if got := podstate.Restarts(pod); got != math.MaxInt32 {
		t.Errorf("Restarts = %d, want it to stop at %d", got, math.MaxInt32)
	}
}

// TestStarted covers a pod whose sidecar runs for less long than its container. What ends by itself does not count.
func TestStarted(t *testing.T) {
	t.Parallel()
	status := func(name string, at time.Duration) corev1.ContainerStatus {
		running := &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(epoch.Add(at))}
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: running}}
	}
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{
			{Name: "migrate"},
			{Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		}},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{status("migrate", time.Hour), status("proxy", time.Minute)},
			ContainerStatuses:     []corev1.ContainerStatus{status("app", time.Second), {Name: "log"}},
		},
	}
	if got, want := podstate.Started(pod), epoch.Add(time.Minute); !got.Equal(want) {
		t.Errorf("Started = %v, want %v, when the sidecar started", got, want)
	}
}

func TestDeletionCost(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int32{
		"0": 0, "7": 7, "-7": -7, "2147483647": math.MaxInt32, "-2147483648": math.MinInt32,
		"": 0, "+7": 0, "07": 0, "7.0": 0, " 7": 0, "high": 0, "2147483648": 0, "-": 0, "1e3": 0,
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.PodDeletionCost: value}}}
		if got := podstate.DeletionCost(pod); got != want {
			t.Errorf("DeletionCost of %q = %d, want %d", value, got, want)
		}
	}
	if got := podstate.DeletionCost(&corev1.Pod{}); got != 0 {
		t.Errorf("DeletionCost without annotation = %d, want 0", got)
	}
}

// TestEndedSoon covers what is left of pods that have ended, two hours after they were created. They were bound after one hour.
func TestEndedSoon(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(epoch.Add(d)) }
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, d time.Duration) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: at(d)}
	}
	bound := condition(corev1.PodScheduled, corev1.ConditionTrue, time.Hour)
	exited := func(d time.Duration) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(d)}}}}
	}
	for name, tt := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"it exited at once":    {corev1.PodStatus{Conditions: []corev1.PodCondition{bound}, ContainerStatuses: exited(61 * time.Minute)}, true},
		"it exited after that": {corev1.PodStatus{Conditions: []corev1.PodCondition{bound}, ContainerStatuses: exited(80 * time.Minute)}, false},
		"evicted after good service": {corev1.PodStatus{
			Reason: "Evicted", Conditions: []corev1.PodCondition{bound, condition(corev1.DisruptionTarget, corev1.ConditionTrue, 90*time.Minute)},
		}, false},
		"evicted at once": {corev1.PodStatus{
			Reason: "Evicted", Conditions: []corev1.PodCondition{bound, condition(corev1.DisruptionTarget, corev1.ConditionTrue, 61*time.Minute)},
		}, true},
		"shut down with its node": {corev1.PodStatus{
			Reason: "Terminated", Conditions: []corev1.PodCondition{bound, condition(corev1.PodReady, corev1.ConditionFalse, 115*time.Minute)},
		}, false},
		"rejected by a node that has changed":  {corev1.PodStatus{Reason: "NodeAffinity", StartTime: new(at(time.Hour))}, false},
		"rejected by the node that it came to": {corev1.PodStatus{Reason: "OutOfcpu", StartTime: new(at(119 * time.Minute))}, true},
		"preempted before its kubelet saw it":  {corev1.PodStatus{Reason: "Preempting", StartTime: new(at(2 * time.Hour))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}, Status: tt.status}
			if got := podstate.EndedSoon(pod, epoch.Add(2*time.Hour)); got != tt.want {
				t.Errorf("EndedSoon() = %t", got)
			}
		})
	}
}

func TestMounts(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "scratch"}, {Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-web-0"}}},
	}}}
	for claim, want := range map[string]bool{"data-web-0": true, "data": false, "": false} {
		if got := podstate.Mounts(pod, claim); got != want {
			t.Errorf("mounts %q: %t", claim, got)
		}
	}
}
