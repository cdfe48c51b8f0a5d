// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/simulator/kubelet"
)

// model plays scripts on the model, in a time of its own.
type model struct {
	Film

	kubelet kubelet.Model
	memory  kubelet.Memory
	pod     *corev1.Pod
	now     time.Time
	dead    bool
}

// limit bounds the time of a step, in the model's own time.
const limit = 10 * time.Minute

// Model returns the film that the model gives.
func Model(s *Script) ([]string, error) {
	m := &model{kubelet: kubelet.Recorded(), now: time.Date(2026, time.November, 22, 0, 0, 0, 0, time.UTC)}
	m.kubelet.SlowDelay = 2 * time.Second // as the image has it
	for _, step := range s.Steps {
		m.Say(step.Say)
		m.do(s, &step)
		if err := m.await(step.Until); err != nil {
			return m.Lines, fmt.Errorf("%s: %s: %w", s.Name, step.Say, err)
		}
	}
	return m.Lines, nil
}

// do does what the API server and the scheduler would.
func (m *model) do(s *Script, step *Step) {
	before := m.pod.DeepCopy()
	switch {
	case m.pod == nil:
		m.pod = s.NewPod()
		m.pod.UID, m.pod.Namespace, m.pod.Generation, m.pod.Spec.NodeName = "622fd5c4", "default", 1, "node-1"
		m.pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}
		return
	case step.KillKubelet:
		m.dead = true
	case step.StartKubelet:
		m.dead, m.memory = false, kubelet.Memory{}
	case step.Delete:
		seconds := *m.pod.Spec.TerminationGracePeriodSeconds
		m.pod.DeletionTimestamp, m.pod.DeletionGracePeriodSeconds = new(metav1.NewTime(m.now.Add(time.Duration(seconds)*time.Second))), &seconds
		m.pod.Generation++
	}
	for _, change := range []func(*corev1.Pod){step.Edit, step.Resize, step.Status} {
		if change != nil {
			change(m.pod)
		}
	}
	if before != nil && !apiequality.Semantic.DeepEqual(before.Spec, m.pod.Spec) {
		m.pod.Generation++
	}
	m.Show(m.pod)
}

// await lets time pass until the film shows what is wanted.
func (m *model) await(wanted []string) error {
	for end := m.now.Add(limit); !m.Has(wanted...); {
		if m.dead || len(wanted) == 0 {
			return nil
		}
		wait := m.look()
		switch {
		case m.pod == nil, m.Has(wanted...):
		case wait == 0:
			return fmt.Errorf("waited for %q; nothing more comes after\n%s", wanted, m.last)
		case m.now.Add(wait).After(end):
			return fmt.Errorf("waited %v for %q; the last frame is\n%s", limit, wanted, m.last)
		default:
			m.now = m.now.Add(wait)
		}
	}
	return nil
}

// look lets the kubelet look once. A write is a change, at which it looks again at once.
func (m *model) look() time.Duration {
	o := m.kubelet.Step(m.pod, m.memory, m.now)
	m.memory = o.Memory
	if o.Status != nil {
		m.pod = m.pod.DeepCopy()
		m.pod.Status = *o.Status
		m.Show(m.pod)
	}
	if o.Remove {
		m.pod = nil
		m.ShowGone()
	}
	return o.Next
}
