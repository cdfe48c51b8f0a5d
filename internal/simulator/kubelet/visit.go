// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// visit is one Step in the making: the kubelet looks at one pod once.
type visit struct {
	model  Model
	pod    *corev1.Pod // as the caller knows it: never written
	now    time.Time
	status *corev1.PodStatus // the status to report: a copy that may be changed
	memory Memory
	again  time.Duration // when to look again; 0: only when the pod changes
	remove bool
}

func (m Model) visit(pod *corev1.Pod, memory Memory, now time.Time) *visit {
	return &visit{model: m, pod: pod, now: now, status: pod.Status.DeepCopy(), memory: memory}
}

// outcome compares the status to report with the status in the API.
func (v *visit) outcome() Outcome {
	o := Outcome{Memory: v.memory, Remove: v.remove, Next: v.again}
	if !apiequality.Semantic.DeepEqual(v.status, &v.pod.Status) {
		o.Status = v.status
	}
	return o
}

// waitUntil requests another Step at t at the latest, or as soon as possible if t is not in the future.
func (v *visit) waitUntil(t time.Time) {
	wait := max(t.Sub(v.now), time.Nanosecond)
	if v.again == 0 || wait < v.again {
		v.again = wait
	}
}

// timestamp is now as the API stores it: in whole seconds.
func (v *visit) timestamp() metav1.Time { return metav1.NewTime(v.now.UTC().Truncate(time.Second)) }

// admit is the first event of a pod: all conditions at once, all containers waiting.
func (v *visit) admit() {
	v.introduce()
	v.memory = Memory{awake: true}
	v.report()
	transitions{v}.plan()
}

// introduce writes the first status of a pod.
func (v *visit) introduce() {
	now := v.timestamp()
	v.status.StartTime = &now
	v.status.Phase = corev1.PodPending
	v.status.HostIP = v.model.hostIP()
	v.status.HostIPs = []corev1.HostIP{{IP: v.model.hostIP()}}
	v.status.ObservedGeneration = v.pod.Generation
	reason := reasonCreating
	if len(v.pod.Spec.InitContainers) > 0 {
		reason = reasonInitializing
	}
	v.status.InitContainerStatuses = waitingContainers(v.pod.Spec.InitContainers, reason)
	v.status.ContainerStatuses = waitingContainers(v.pod.Spec.Containers, reason)
	slices.SortFunc(v.status.ContainerStatuses, func(a, b corev1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) })
}

func waitingContainers(containers []corev1.Container, reason string) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for i := range containers {
		statuses = append(statuses, corev1.ContainerStatus{
			Name:    containers[i].Name,
			Image:   containers[i].Image,
			Started: new(false),
			State:   waiting(reason, ""),
		})
	}
	return statuses
}

// work is the life of a pod from its first event until its deletion. While the worker is busy, only probes cause
// events. When it is done, its work and the newest generation come in one event. Only then does it read the pod again
// and plan what to do next: so no plan is ever carried out in the event that announces it.
func (v *visit) work() {
	v.wake()
	if (transitions{v}).isBusy() {
		transitions{v}.ring(func(a act) bool { return a == passProbe })
		v.report()
		transitions{v}.waitForAlarms()
		v.waitUntil(v.memory.busyUntil)
		return
	}
	transitions{v}.perform()
	transitions{v}.ring(func(act) bool { return true })
	v.observe()
	v.report()
	transitions{v}.plan()
}

// wake restarts the kubelet: it does not know that probes have passed until they pass again.
func (v *visit) wake() {
	if v.memory.awake {
		return
	}
	v.memory.awake = true
	for _, c := range v.members() {
		if c.spec.ReadinessProbe != nil && c.role != initOnce {
			c.status.Ready = false
		}
	}
}

// observe reads the spec: the generation, and the resources asked for. A look at a changed pod shows a container that is
// held back as that, though its end was reported last.
func (v *visit) observe() {
	if v.status.ObservedGeneration != v.pod.Generation {
		v.showHeldBack()
	}
	v.status.ObservedGeneration = v.pod.Generation
	for _, c := range v.members() {
		if c.status.ContainerID == "" {
			c.status.Image = c.spec.Image
		}
	}
	resizing{v}.considerResize()
}

// showHeldBack shows the back-off of containers that ended more than once.
func (v *visit) showHeldBack() {
	for _, c := range v.members() {
		end := c.status.State.Terminated
		if end != nil && c.status.LastTerminationState.Terminated != nil && c.restartsAfter(end.ExitCode, v.pod.Spec.RestartPolicy) {
			containers{v}.apply(c, task{act: backOff})
		}
	}
}

// report derives phase and conditions from the containers. When a pod ends by itself its conditions change first, and
// its phase once its sandbox is gone.
func (v *visit) report() {
	phase := v.status.Phase
	if !isFinished(phase) {
		phase = conditions{v}.phase()
	}
	if isFinished(phase) && v.hasRun() && (conditions{v}).reasonOf(corev1.ContainersReady) != endReason(phase) {
		v.waitUntil(v.now)
	} else {
		v.status.Phase = phase
	}
	conditions{v}.reportConditions(phase)
}
