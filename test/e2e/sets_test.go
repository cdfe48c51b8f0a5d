// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
)

// gate is a condition that pods of a set made with gated wait for. fixture.setGate sets it, so a spec decides which pod is
// ready, on any cluster.
const gate = "e2e.rollset.dev/gate"

// option changes a set that is about to be created or updated.
type option func(*v1beta1.RollSet)

// newSet returns a set of the simplest kind. Its pods are labeled app=<name>, with one container called main.
func newSet(name string, replicas int32, options ...option) *v1beta1.RollSet {
	labels := map[string]string{"app": name}
	set := &v1beta1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.RollSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(1)),
					Containers:                    []corev1.Container{{Name: "main", Image: cluster.image()}},
				},
			},
		},
	}
	for _, o := range options {
		o(set)
	}
	return set
}

// scaledTo sets the number of pods.
func scaledTo(replicas int32) option {
	return func(s *v1beta1.RollSet) { s.Spec.Replicas = &replicas }
}

// template changes the pod template in any way.
func template(change func(*corev1.PodTemplateSpec)) option {
	return func(s *v1beta1.RollSet) { change(&s.Spec.Template) }
}

// release gives the set another template, whose pods work as well as those before.
func release(version string) option {
	return template(func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RELEASE", Value: version}}
	})
}

// withImage sets the image.
func withImage(image string) option {
	return template(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = image })
}

// requesting sets the cpu that each pod asks for.
func requesting(cpu string) option {
	return template(func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	})
}

// gated makes the pods wait for fixture.setGate before they are ready.
func gated() option {
	return template(func(t *corev1.PodTemplateSpec) {
		t.Spec.ReadinessGates = append(t.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
	})
}

// rolling changes the parameters of rolling updates.
func rolling(change func(*v1beta1.RollingUpdate)) option {
	return func(s *v1beta1.RollSet) { change(&s.Spec.UpdateStrategy.RollingUpdate) }
}

// maxUnavailable, maxSurge and partition take numbers and percentages, such as "2" and "20%".
func maxUnavailable(value string) option {
	return rolling(func(r *v1beta1.RollingUpdate) { r.MaxUnavailable = new(intstr.Parse(value)) })
}

func maxSurge(value string) option {
	return rolling(func(r *v1beta1.RollingUpdate) { r.MaxSurge = new(intstr.Parse(value)) })
}

func partition(value string) option {
	return rolling(func(r *v1beta1.RollingUpdate) { r.Partition = new(intstr.Parse(value)) })
}

// paused freezes the revisions of the pods, resumed releases them.
func paused() option { return rolling(func(r *v1beta1.RollingUpdate) { r.Paused = true }) }

func resumed() option { return rolling(func(r *v1beta1.RollingUpdate) { r.Paused = false }) }

// barePod returns a pod without a controller, as the set's template would make it.
func barePod(set *v1beta1.RollSet, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set.Spec.Template.Labels},
		Spec:       *set.Spec.Template.Spec.DeepCopy(),
	}
}

// isUpdated checks that all pods are available at the update revision and that no other pod is left.
func isUpdated(set *v1beta1.RollSet) error {
	s := set.Status
	if r := *set.Spec.Replicas; s.Replicas != r || s.UpdatedReplicas != r || s.UpdatedAvailableReplicas != r || s.CurrentRevision != s.UpdateRevision {
		return fmt.Errorf("not all of %d pods are updated:\n%s", r, inYAML(s))
	}
	return nil
}
