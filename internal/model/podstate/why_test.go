// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podstate_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/model/podstate"
)

// uid is an id such as a runtime generates for every try.
const uid = "d3adb33fd3adb33fd3adb33fd3adb33fd3adb33fd3adb33fd3adb33fd3adb33f"

// pull is containerd's message when it cannot pull an image.
const pull = `failed to pull and unpack image "app:nope": failed to resolve image: docker.io/library/app:nope: not found`

// notReady returns a pod on a node with a container "app" whose state is as the kubelet reports it.
func notReady(app corev1.ContainerStatus) *corev1.Pod {
	app.Name = "app"
	pod := with(
		is(corev1.PodScheduled, corev1.ConditionTrue),
		corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(epoch),
			Reason: "ContainersNotReady", Message: "containers with unready status: [app]",
		},
		is(corev1.ContainersReady, corev1.ConditionFalse),
	)
	pod.Spec = corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "app", Image: "app:nope"}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{app}
	return pod
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func terminated(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(epoch.Add(time.Minute)),
	}}
}

// running returns the state of a container that started so long after the last one ended.
func running(pause time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{
		StartedAt: metav1.NewTime(epoch.Add(time.Minute + pause)),
	}}
}

// change returns a pod after an edit.
func change(pod *corev1.Pod, edit func(*corev1.Pod)) *corev1.Pod {
	edit(pod)
	return pod
}

// withInit returns a pod with the given init container, and a container that waits for it.
func withInit(sidecar *corev1.ContainerRestartPolicy, init corev1.ContainerStatus) *corev1.Pod {
	init.Name = "setup"
	pod := notReady(corev1.ContainerStatus{State: waiting("PodInitializing", "")})
	pod.Spec.InitContainers = []corev1.Container{{Name: "setup", Image: "setup:v1", RestartPolicy: sidecar}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{init}
	return pod
}

func TestWhyNoNode(t *testing.T) {
	t.Parallel()
	unscheduled := func(reason, message string) *corev1.Pod {
		return with(corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		})
	}
	checkWhy(t, map[string]whyCase{
		"the scheduler has not looked at it": {pod: with(), want: "not scheduled yet"},
		"no node fits": {
			pod:  unscheduled("Unschedulable", "0/10 nodes are available: 10 Insufficient cpu. preemption: 0/10 nodes are available: 10 No preemption victims found for incoming pod."),
			want: "Unschedulable: 0/10 nodes are available: 10 Insufficient cpu.",
		},
		"gated": {
			pod:  unscheduled("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"),
			want: "SchedulingGated: Scheduling is blocked due to non-empty scheduling gates",
		},
		"a condition without words": {pod: unscheduled("", ""), want: "not ready"},
		"a message that attacks the terminal": {
			pod:  unscheduled("Unschedulable", "\x1b]0;x\x07\x1b[2J0/1 nodes\nare available"),
			want: "Unschedulable: 0/1 nodes are available",
		},
	})
}

func TestWhyNodeButNothingElse(t *testing.T) {
	t.Parallel()
	checkWhy(t, map[string]whyCase{
		"the kubelet has not looked at it": {
			pod:  &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}},
			want: "not started yet on node node-1",
		},
		"a condition without containers to blame": {
			pod:  notReady(corev1.ContainerStatus{Ready: true}),
			want: "ContainersNotReady: containers with unready status: [app]",
		},
		"nothing to blame at all": {
			pod: change(notReady(corev1.ContainerStatus{Ready: true}), func(p *corev1.Pod) {
				p.Status.Conditions = nil
			}),
			want: "not ready",
		},
		"ready": {pod: with(is(corev1.PodScheduled, corev1.ConditionTrue), is(corev1.PodReady, corev1.ConditionTrue))},
	})
}

func TestWhyContainer(t *testing.T) {
	t.Parallel()
	checkWhy(t, map[string]whyCase{
		"starts":          {pod: notReady(corev1.ContainerStatus{State: waiting("ContainerCreating", "")}), want: "container app: ContainerCreating"},
		"no state at all": {pod: notReady(corev1.ContainerStatus{}), want: "container app has not started"},
		"fails its probe": {pod: notReady(corev1.ContainerStatus{State: running(0)}), want: "container app is running but not ready"},
		"fails in a pod that restarts after failures": {
			pod: change(notReady(corev1.ContainerStatus{State: terminated(3, "Error")}), func(p *corev1.Pod) {
				p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			}),
			want: "container app: CrashLoopBackOff: last exit code 3 (Error)",
		},
		"a missing secret": {
			pod:  notReady(corev1.ContainerStatus{State: waiting("CreateContainerConfigError", `secret "db" not found`)}),
			want: `container app: CreateContainerConfigError: secret "db" not found`,
		},
		"an image that must be there already": {
			pod:  notReady(corev1.ContainerStatus{State: waiting("ErrImageNeverPull", `Container image "app:nope" is not present with pull policy of Never`)}),
			want: `container app: ErrImageNeverPull: Container image "app:nope" is not present with pull policy of Never`,
		},
		"ids that differ from try to try are left out": {
			pod:  notReady(corev1.ContainerStatus{State: waiting("CreateContainerError", "failed to reserve container name: reserved for "+uid)}),
			want: "container app: CreateContainerError: failed to reserve container name: reserved for …",
		},
		"a container that cannot be run, at first": {
			pod:  notReady(corev1.ContainerStatus{State: waiting("RunContainerError", "no such device")}),
			want: "container app: RunContainerError: no such device",
		},
		"a program that the image does not have": {
			pod: notReady(corev1.ContainerStatus{
				RestartCount: 3,
				State:        waiting("CrashLoopBackOff", "back-off 40s restarting failed container=app pod=web-0_default(6f)"),
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					ExitCode: 128, Reason: "StartError", Message: `exec: "nope": executable file not found in $PATH`,
				}},
			}),
			want: `container app: CrashLoopBackOff: last exit code 128 (StartError): exec: "nope": executable file not found in $PATH`,
		},
		"ended for good": {
			pod: change(notReady(corev1.ContainerStatus{State: terminated(137, "OOMKilled")}), func(p *corev1.Pod) {
				p.Spec.RestartPolicy = corev1.RestartPolicyNever
			}),
			want: "container app: exit code 137 (OOMKilled)",
		},
		"ended well where only failures are restarted": {
			pod: change(notReady(corev1.ContainerStatus{State: terminated(0, "")}), func(p *corev1.Pod) {
				p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			}),
			want: "container app: exit code 0",
		},
		"a crash loop without a past": {
			pod:  notReady(corev1.ContainerStatus{State: waiting("CrashLoopBackOff", "")}),
			want: "container app: CrashLoopBackOff",
		},
		"one whose image cannot be pulled does too": {
			pod: change(notReady(corev1.ContainerStatus{State: waiting("PodInitializing", "")}), func(p *corev1.Pod) {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "log", State: waiting("InvalidImageName", "")})
			}),
			want: "container log: InvalidImageName",
		},
		"the one that fails explains more than those that start": {
			pod: change(notReady(corev1.ContainerStatus{State: waiting("ContainerCreating", "")}), func(p *corev1.Pod) {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
					corev1.ContainerStatus{Name: "fine", Ready: true, State: running(0)},
					corev1.ContainerStatus{Name: "slow", State: running(0)},
					corev1.ContainerStatus{Name: "log", State: waiting("CrashLoopBackOff", ""), LastTerminationState: terminated(2, "Error")})
			}),
			want: "container log: CrashLoopBackOff: last exit code 2 (Error)",
		},
	})
}

func TestAllRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"one runs":                {notReady(corev1.ContainerStatus{State: running(0)}), true},
		"one starts":              {notReady(corev1.ContainerStatus{}), false},
		"one fails":               {notReady(corev1.ContainerStatus{State: terminated(1, "Error")}), false},
		"one prepares the others": {withInit(nil, corev1.ContainerStatus{State: running(0)}), false},
		"none is known":           {&corev1.Pod{}, false},
	} {
		if got := podstate.AllRun(tt.pod); got != tt.want {
			t.Errorf("%s: AllRun = %t, want %t", name, got, tt.want)
		}
	}
}

func TestWhyInitContainer(t *testing.T) {
	t.Parallel()
	always := new(corev1.ContainerRestartPolicyAlways)
	checkWhy(t, map[string]whyCase{
		"not begun":                         {pod: withInit(nil, corev1.ContainerStatus{State: waiting("PodInitializing", "")}), want: "init container setup: PodInitializing"},
		"at work":                           {pod: withInit(nil, corev1.ContainerStatus{State: running(0)}), want: "init container setup is running"},
		"fails":                             {pod: withInit(nil, corev1.ContainerStatus{State: terminated(3, "Error")}), want: "init container setup: CrashLoopBackOff: last exit code 3 (Error)"},
		"done":                              {pod: withInit(nil, corev1.ContainerStatus{State: terminated(0, "Completed")}), want: "container app: PodInitializing"},
		"bad image":                         {pod: withInit(nil, corev1.ContainerStatus{State: waiting("ErrImagePull", "")}), want: `init container setup: ImagePullBackOff: Back-off pulling image "setup:v1"`},
		"at work, and nothing else is said": {pod: change(withInit(nil, corev1.ContainerStatus{State: running(0)}), func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }), want: "init container setup is running"},
		"sidecar waits":                     {pod: withInit(always, corev1.ContainerStatus{State: running(0), Started: new(false)}), want: "init container setup is running but not ready"},
		"sidecar crashes": {
			pod:  withInit(always, corev1.ContainerStatus{State: terminated(0, "Completed"), Started: new(false)}),
			want: "init container setup: CrashLoopBackOff: last exit code 0 (Completed)",
		},
		"sidecar ends in a pod that restarts after failures": {
			pod: change(withInit(always, corev1.ContainerStatus{State: terminated(0, "Completed")}), func(p *corev1.Pod) {
				p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			}),
			want: "init container setup: CrashLoopBackOff: last exit code 0 (Completed)",
		},
		"fails in a pod that restarts nothing": {
			pod: change(withInit(nil, corev1.ContainerStatus{State: terminated(3, "Error")}), func(p *corev1.Pod) {
				p.Spec.RestartPolicy = corev1.RestartPolicyNever
			}),
			want: "init container setup: exit code 3 (Error)",
		},
		"sidecar crashes after it had started": {
			pod:  withInit(always, corev1.ContainerStatus{State: terminated(3, "Error"), Started: new(true)}),
			want: "init container setup: CrashLoopBackOff: last exit code 3 (Error)",
		},
		"sidecar crashes in a pod that never restarts": {
			pod: change(withInit(always, corev1.ContainerStatus{State: terminated(3, "Error")}), func(p *corev1.Pod) {
				p.Spec.RestartPolicy = corev1.RestartPolicyNever
			}),
			want: "init container setup: CrashLoopBackOff: last exit code 3 (Error)",
		},
		"sidecar has started": {
			pod:  withInit(always, corev1.ContainerStatus{State: running(0), Started: new(true), Ready: true}),
			want: "container app: PodInitializing",
		},
	})
}

func TestWhyGated(t *testing.T) {
	t.Parallel()
	gated := func(node string, gates ...corev1.PodCondition) *corev1.Pod {
		pod := with(append(gates, is(corev1.PodScheduled, corev1.ConditionTrue),
			is(corev1.ContainersReady, corev1.ConditionTrue), is(corev1.PodReady, corev1.ConditionFalse))...)
		pod.Spec.NodeName = node
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "lb/open"}, {ConditionType: "dns/set"}}
		return pod
	}
	why := is("dns/set", corev1.ConditionFalse)
	why.Reason, why.Message = "Propagating", "3 seconds to go"
	checkWhy(t, map[string]whyCase{
		"the gate was never set": {pod: gated("node-1"), want: "readiness gate lb/open is not set"},
		"closed":                 {pod: gated("node-1", is("lb/open", corev1.ConditionFalse)), want: "readiness gate lb/open is False"},
		"closed with a reason":   {pod: gated("node-1", is("lb/open", corev1.ConditionTrue), why), want: "readiness gate dns/set is False (Propagating)"},
		"the node is gone": {
			pod:  gated("node-1", is("lb/open", corev1.ConditionTrue), is("dns/set", corev1.ConditionTrue)),
			want: "node node-1 is unreachable: not ready though its containers are",
		},
		"the node is unknown": {
			pod:  gated("", is("lb/open", corev1.ConditionTrue), is("dns/set", corev1.ConditionTrue)),
			want: "not ready though its containers are",
		},
	})
}

func TestWhyEnd(t *testing.T) {
	t.Parallel()
	deleted := func(phase corev1.PodPhase, finalizers ...string) *corev1.Pod {
		pod := notReady(corev1.ContainerStatus{State: running(0)})
		pod.DeletionTimestamp, pod.Finalizers = new(metav1.NewTime(epoch)), finalizers
		pod.Status.Phase = phase
		return pod
	}
	finished := func(phase corev1.PodPhase, reason, message string) *corev1.Pod {
		pod := notReady(corev1.ContainerStatus{State: terminated(1, "Error")})
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = phase, reason, message
		return pod
	}
	checkWhy(t, map[string]whyCase{
		"its containers still run":  {pod: deleted(corev1.PodRunning), want: "Terminating on node node-1"},
		"its containers have ended": {pod: deleted(corev1.PodSucceeded), want: "Terminating"},
		"its node does not answer": {
			pod: change(deleted(corev1.PodRunning), func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{is(corev1.PodScheduled, corev1.ConditionTrue), is(corev1.ContainersReady, corev1.ConditionTrue)}
			}),
			want: "Terminating on node node-1, which does not answer: if it is off, taint it " +
				"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, or delete the Node",
		},
		"finalizers": {
			pod:  deleted(corev1.PodFailed, "example.com/backup", "foregroundDeletion"),
			want: "Terminating: blocked by finalizers example.com/backup, foregroundDeletion",
		},
		"evicted": {
			pod:  finished(corev1.PodFailed, "Evicted", "The node was low on resource: memory."),
			want: "Failed: Evicted: The node was low on resource: memory.",
		},
		"failed by its container": {pod: finished(corev1.PodFailed, "", ""), want: "Failed: container app: exit code 1 (Error)"},
		"failed without a cause": {
			pod: change(finished(corev1.PodFailed, "", ""), func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State = running(0)
			}),
			want: "Failed",
		},
		"succeeded": {
			pod: change(finished(corev1.PodSucceeded, "", ""), func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State = terminated(0, "Completed")
			}),
			want: "Succeeded",
		},
	})
}

// TestWhyIsStable covers the states between which the kubelet alternates while nothing changes.
func TestWhyIsStable(t *testing.T) {
	t.Parallel()
	crashed := terminated(1, "Error")
	restarted := func(n int32, s corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{RestartCount: n, State: s, LastTerminationState: crashed}
	}
	for name, tc := range map[string]struct {
		want   string
		states []corev1.ContainerStatus
	}{
		"an image that cannot be pulled": {
			want: `container app: ImagePullBackOff: Back-off pulling image "app:nope": not found`,
			states: []corev1.ContainerStatus{
				{State: waiting("ErrImagePull", pull)},
				{State: waiting("ImagePullBackOff", `Back-off pulling image "app:nope": ErrImagePull: `+pull)},
				{Image: "app:v1", State: waiting("ErrImagePull", "rpc error: code = NotFound desc = "+pull)},
			},
		},
		"a crash loop": {
			want: "container app: CrashLoopBackOff: last exit code 1 (Error)",
			states: []corev1.ContainerStatus{
				{State: crashed},
				restarted(1, crashed),
				restarted(2, waiting("CrashLoopBackOff", "back-off 10s restarting failed container=app pod=web-0_default(6f)")),
				restarted(3, waiting("CrashLoopBackOff", "back-off 20s restarting failed container=app pod=web-0_default(6f)")),
				restarted(3, running(20*time.Second)),
				restarted(4, waiting("RunContainerError", "context canceled after 3 s")),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, s := range tc.states {
				if got := podstate.Why(notReady(s)); got != tc.want {
					t.Errorf("state %d: Why = %q, want %q", i, got, tc.want)
				}
			}
		})
	}
}

// TestWhyRunning covers containers that run for the second time and are in no crash loop.
func TestWhyRunning(t *testing.T) {
	t.Parallel()
	again := func(pause time.Duration, last corev1.ContainerState) *corev1.Pod {
		return notReady(corev1.ContainerStatus{RestartCount: 1, State: running(pause), LastTerminationState: last})
	}
	const want = "container app is running but not ready"
	checkWhy(t, map[string]whyCase{
		"it was replaced by an update":                 {pod: again(time.Minute, terminated(0, "Completed")), want: want},
		"it was killed for an update, the image large": {pod: again(time.Minute, terminated(143, "Error")), want: want},
		"it crashed once":                              {pod: again(time.Second, terminated(1, "Error")), want: want},
		"it was ready since": {
			pod: change(again(time.Minute, terminated(1, "Error")), func(p *corev1.Pod) {
				for i := range p.Status.Conditions {
					p.Status.Conditions[i].LastTransitionTime = metav1.NewTime(epoch.Add(time.Hour))
				}
			}),
			want: want,
		},
		"no restart is counted": {pod: notReady(corev1.ContainerStatus{State: running(time.Minute), LastTerminationState: terminated(1, "Error")}), want: want},
		"its state is not reported": {
			pod:  notReady(corev1.ContainerStatus{RestartCount: 1, LastTerminationState: terminated(1, "Error")}),
			want: "container app has not started",
		},
		"unless it ran out of memory": {
			pod:  again(time.Minute, terminated(137, "OOMKilled")),
			want: "container app: CrashLoopBackOff: last exit code 137 (OOMKilled)",
		},
	})
}

func TestWhyPullFails(t *testing.T) {
	t.Parallel()
	const image = `container app: ImagePullBackOff: Back-off pulling image "app:nope"`
	for message, want := range map[string]string{
		"":                                  image,
		`Back-off pulling image "app:nope"`: image,
		"read tcp 10.0.0.1:43210->10.0.0.2:443: EOF":                                 image,
		"pull access denied, repository does not exist or may require authorization": image + ": access denied",
		"unexpected status: 401 Unauthorized":                                        image + ": access denied",
		"manifest unknown: manifest unknown":                                         image + ": not found",
		"toomanyrequests: You have reached your pull rate limit. request id 1234":    image + ": too many requests",
		"dial tcp: lookup registry on 10.0.0.10:53: no such host":                    image + ": no such host",
		"dial tcp [::1]:5999: connect: connection refused":                           image + ": connection refused",
		"x509: certificate signed by unknown authority":                              image + ": certificate not trusted",
		"write /var/lib/x: no space left on device":                                  image + ": no space left on device",
		"dial tcp 10.0.0.1:443: i/o timeout":                                         image + ": timeout",
	} {
		if got := podstate.Why(notReady(corev1.ContainerStatus{State: waiting("ErrImagePull", message)})); got != want {
			t.Errorf("Why for %q = %q, want %q", message, got, want)
		}
	}
	pod := notReady(corev1.ContainerStatus{Image: "from-status:v1", State: waiting("ErrImagePull", "")})
	pod.Spec.Containers = nil
	if got, want := podstate.Why(pod), `container app: ImagePullBackOff: Back-off pulling image "from-status:v1"`; got != want {
		t.Errorf("Why = %q, want %q", got, want)
	}
}

// whyCase is a pod and the sentence about it.
type whyCase struct {
	pod  *corev1.Pod
	want string
}

func checkWhy(t *testing.T, cases map[string]whyCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := podstate.Why(tc.pod)
			if got != tc.want {
				t.Errorf("Why = %q\n    want %q", got, tc.want)
			}
			checkPrintable(t, got, podstate.WhyLimit)
		})
	}
}

// FuzzWhy gives Why pods that no kubelet would report.
func FuzzWhy(f *testing.F) {
	for _, pod := range []*corev1.Pod{
		{},
		notReady(corev1.ContainerStatus{State: waiting("ErrImagePull", pull)}),
		notReady(corev1.ContainerStatus{RestartCount: 2, State: running(time.Minute), LastTerminationState: terminated(1, "Error")}),
		withInit(new(corev1.ContainerRestartPolicyAlways), corev1.ContainerStatus{State: terminated(-1, strings.Repeat("é", 300))}),
		with(corev1.PodCondition{Type: corev1.PodScheduled, Status: "Perhaps", Reason: "\x1b[31m", Message: strings.Repeat("\n", 10_000)}),
	} {
		b, err := json.Marshal(pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var pod corev1.Pod
		if json.Unmarshal(b, &pod) != nil {
			t.Skip("not a pod")
		}
		got := podstate.Why(&pod)
		checkPrintable(t, got, podstate.WhyLimit)
		if _, ready := podstate.ReadySince(&pod); got == "" && (!ready || podstate.Terminating(&pod)) {
			t.Error("a pod that is not ready needs a reason")
		}
		podstate.Restarts(&pod)
		podstate.DeletionCost(&pod)
	})
}
