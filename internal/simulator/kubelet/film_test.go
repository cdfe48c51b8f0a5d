// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// epoch is when every film begins.
var epoch = time.Date(2026, time.November, 20, 23, 42, 32, 0, time.UTC)

// film is one pod, its kubelet and its API server, and a line for every event the kubelet writes.
type film struct {
	t       *testing.T
	model   Model
	pod     *corev1.Pod
	memory  Memory
	now     time.Time
	cut     time.Time // times on the strip count from here
	strip   []string
	removed bool
}

func newFilm(t *testing.T, model Model, pod *corev1.Pod) *film {
	t.Helper()
	return &film{t: t, model: model, pod: pod, now: epoch, cut: epoch}
}

// step lets the kubelet look once, and returns when it wants to look again. A write is a change, so it looks at once.
func (f *film) step() time.Duration {
	f.t.Helper()
	before := f.pod.DeepCopy()
	o := f.model.Step(f.pod, f.memory, f.now)
	if diff := cmp.Diff(before, f.pod); diff != "" {
		f.t.Fatalf("Step changed its argument:\n%s", diff)
	}
	f.memory = o.Memory
	f.removed = f.removed || o.Remove
	if o.Status == nil {
		return o.Next
	}
	f.pod = f.pod.DeepCopy()
	f.pod.Status = *o.Status
	f.strip = append(f.strip, fmt.Sprintf("+%v %s", f.now.Sub(f.cut), frame(f.pod)))
	if again := f.model.Step(f.pod, f.memory, f.now); again.Status != nil && o.Next != time.Nanosecond {
		f.t.Errorf("a second look at the same instant writes another event after %s", frame(f.pod))
	}
	return o.Next
}

// run lets d pass.
func (f *film) run(d time.Duration) *film {
	f.t.Helper()
	end := f.now.Add(d)
	for range 1000 {
		wait := f.step()
		if wait == 0 || f.now.Add(wait).After(end) {
			f.now = end
			return f
		}
		f.now = f.now.Add(wait)
	}
	f.t.Fatalf("no rest after 1000 looks: %s", strings.Join(f.strip[len(f.strip)-5:], "\n"))
	return f
}

// edit changes the pod as a client would, and starts a new strip. The generation is the API server's to move: spec
// changes and deletions do.
func (f *film) edit(change func(*corev1.Pod)) *film {
	f.pod = f.pod.DeepCopy()
	change(f.pod)
	f.cut, f.strip = f.now, nil
	return f
}

func (f *film) image(name string) *film {
	return f.edit(func(p *corev1.Pod) { p.Spec.Containers[0].Image = name; p.Generation++ })
}

func (f *film) delete(graceSeconds int64) *film {
	return f.edit(func(p *corev1.Pod) {
		at := metav1.NewTime(f.now.Add(time.Duration(graceSeconds) * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &graceSeconds
		p.Generation++
	})
}

func (f *film) expect(want ...string) *film {
	f.t.Helper()
	if diff := cmp.Diff(want, f.strip); diff != "" {
		f.t.Errorf("events differ (-want +got):\n%s", diff)
	}
	return f
}

// frame renders what a client sees of a pod: generation/observedGeneration, phase, Ready, containers.
func frame(p *corev1.Pod) string {
	parts := []string{fmt.Sprintf("%d/%d %s", p.Generation, p.Status.ObservedGeneration, p.Status.Phase)}
	for _, c := range p.Status.Conditions {
		switch c.Type {
		case corev1.PodReady:
			parts = append(parts, "Ready="+string(c.Status))
		case corev1.PodResizePending, corev1.PodResizeInProgress:
			parts = append(parts, strings.TrimSpace(string(c.Type)+" "+c.Reason))
		default:
		}
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			parts = append(parts, frameContainer(&list[i]))
		}
	}
	return strings.Join(parts, " ")
}

func frameContainer(c *corev1.ContainerStatus) string {
	state := "running"
	switch {
	case c.State.Waiting != nil:
		state = c.State.Waiting.Reason
	case c.State.Terminated != nil:
		state = fmt.Sprintf("%s(%d)", c.State.Terminated.Reason, c.State.Terminated.ExitCode)
	case c.Ready:
		state = "ready"
	}
	last := ""
	if end := c.LastTerminationState.Terminated; end != nil {
		last = fmt.Sprintf("<%s(%d)", end.Reason, end.ExitCode)
	}
	image := strings.TrimPrefix(c.Image, "docker.io/library/") // TestReportedNames looks at it
	return fmt.Sprintf("%s=%s#%d,%s%s", c.Name, image, c.RestartCount, state, last)
}

// newPod returns a pod with one container, as the scheduler leaves it.
func newPod(image string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "622fd5c4", Generation: 1},
		Spec: corev1.PodSpec{
			NodeName:      "node-1",
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers:    []corev1.Container{{Name: "app", Image: image}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch)},
		}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func probed(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{} }

func gated(gate corev1.PodConditionType) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
	}
}

func setGate(gate corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := range p.Status.Conditions {
			if p.Status.Conditions[i].Type == gate {
				p.Status.Conditions[i].Status = status
				return
			}
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: gate, Status: status})
	}
}

// readyOf returns the pod's Ready condition.
func readyOf(p *corev1.Pod) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c
		}
	}
	return corev1.PodCondition{}
}
