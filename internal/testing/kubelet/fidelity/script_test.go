// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Gate is the readiness gate of gated pods.
const Gate corev1.PodConditionType = "example.com/gate"

// Script is the life of one pod.
type Script struct {
	// Name is the recording's.
	Name string
	// Shape changes the pod before it is created; it begins as one container app of the image web:1 without a probe.
	Shape []func(*corev1.Pod)
	// Steps are done one after another. The first is the creation.
	Steps []Step
}

// Step is one thing that is done, and what is waited for then.
type Step struct {
	Say string
	// Edit changes the pod's spec or metadata, Resize its resources, and Status its status; Delete deletes it.
	Edit, Resize, Status func(*corev1.Pod)
	Delete               bool
	// Soon has the step done at once. Others leave the containers a moment to begin, so that they take signals.
	Soon bool
	// KillKubelet ends the kubelet and StartKubelet starts it again. A script with either has the node to itself.
	KillKubelet, StartKubelet bool
	// Until delays the next step until a frame has all of these. If it is empty, the next step follows at once.
	Until []string
}

// NeedsNode reports whether the script kills the kubelet.
func (s *Script) NeedsNode() bool {
	for _, step := range s.Steps {
		if step.KillKubelet {
			return true
		}
	}
	return false
}

// NewPod returns the pod of the script.
func (s *Script) NewPod() *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(5)), AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "app", Image: "web:1", ImagePullPolicy: corev1.PullIfNotPresent}},
		},
	}
	for _, shape := range s.Shape {
		shape(p)
	}
	return p
}

func of(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image }
}

func sidecarOf(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = image }
}

func both(changes ...func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, change := range changes {
			change(p)
		}
	}
}

// probed gives the container a probe, which passes after a while, so that the two are seen apart.
func probed(p *corev1.Pod) {
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "READY_AFTER", Value: "1s"}}
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}},
		PeriodSeconds: 1,
	}
}

func withSidecar(p *corev1.Pod) {
	p.Spec.InitContainers = []corev1.Container{{
		Name: "sidecar", Image: "sidecar:1", ImagePullPolicy: corev1.PullIfNotPresent, RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
	}}
}

func withInit(p *corev1.Pod) {
	p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "web:exit", ImagePullPolicy: corev1.PullIfNotPresent}}
}

// withHelper adds a container whose name sorts before the first one's.
func withHelper(p *corev1.Pod) {
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "aide", Image: "sidecar:1", ImagePullPolicy: corev1.PullIfNotPresent})
}

func helperOf(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[1].Image = image }
}

func gated(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: Gate}} }

func turned(status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := range p.Status.Conditions {
			if p.Status.Conditions[i].Type == Gate {
				p.Status.Conditions[i].Status = status
				return
			}
		}
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: Gate, Status: status})
	}
}

func restarting(policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.RestartPolicy = policy }
}

// sized gives the container resources; other memory restarts it, if so wanted.
func sized(memory corev1.ResourceResizeRestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
			{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired}, {ResourceName: corev1.ResourceMemory, RestartPolicy: memory},
		}
		size("100m", "32Mi")(p)
	}
}

func size(cpu, memory string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}
	}
}

func annotated(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "note", "new") }
