// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
)

// mark is the label and finalizer of hooks.
const mark = "example.com/mark"

type option func(*v1beta1.RollSet)

// shape is a set, and what it is in the middle of when managers change.
type shape struct {
	name string
	make []option
	// begin starts that change, and end completes it.
	begin, end []option
	// there reports whether the set is in the middle of it.
	there func(*v1beta1.RollSetStatus) bool
	// moves is true if the set does not stand still: pods are created and deleted while managers change.
	moves bool
}

// shapes returns sets of every kind.
func shapes() []shape {
	return []shape{
		{name: "random", make: o(replicas(3)), there: complete},
		{name: "random-none", make: o(replicas(0)), there: complete},
		{name: "random-partition", make: o(replicas(4)), begin: o(partition(2), next), end: o(partition(0)), there: updated(2)},
		{name: "random-paused", make: o(replicas(3)), begin: o(paused(true), next), end: o(paused(false)), there: updated(0)},
		{name: "random-moving", make: o(replicas(12), oneByOne), begin: o(next), there: some, moves: true},
		{name: "random-stuck", make: o(replicas(3)), begin: o(next, image("nginx:missing")), end: o(image("nginx:1")), there: stuck(3)},
		{name: "random-surge", make: o(replicas(3), surge), begin: o(next, image("nginx:missing")), end: o(image("nginx:1")), there: stuck(4)},
		{name: "random-claims", make: o(replicas(3), claims), begin: o(partition(1), next), end: o(partition(0)), there: updated(2)},
		{name: "random-hook", make: o(replicas(2), marked, allAtOnce), begin: o(preDelete, next), end: o(unhook), there: waitsForHook},
		{name: "random-refused", make: o(replicas(3)), begin: o(port(-1)), end: o(port(80)), there: stalled},
		{name: "recreate", make: o(replicas(3), strategy(v1beta1.RecreateStrategy)), there: complete},
		{
			name: "on-delete", make: o(replicas(3)), begin: o(strategy(v1beta1.OnDeleteStrategy), next),
			end: o(strategy(v1beta1.RollingUpdateStrategy)), there: updated(0),
		},
		{name: "in-place-partition", make: o(replicas(4), inPlace), begin: o(partition(2), nextImage), end: o(partition(0)), there: updated(2)},
		{name: "in-place-moving", make: o(replicas(12), inPlace, oneByOne), begin: o(nextImage), there: some, moves: true},
		{name: "in-place-hook", make: o(replicas(2), inPlace, marked, allAtOnce), begin: o(inPlaceUpdate, nextImage), end: o(unhook), there: waitsForHook},
		{name: "ordinal", make: o(replicas(3), ordinal, claims), begin: o(partition(1), next), end: o(partition(0)), there: updated(2)},
		{
			name: "ordinal-stuck", make: o(replicas(3), ordinal, claims), begin: o(next, image("nginx:missing")),
			end: o(image("nginx:1")), there: stuck(3),
		},
		{
			name: "ordinal-parallel", make: o(replicas(4), ordinal, parallel, claims, reserved), begin: o(partition(2), next),
			end: o(partition(0)), there: updated(2),
		},
		{name: "ordinal-moving", make: o(replicas(8), ordinal, claims), begin: o(next), there: some, moves: true},
		{name: "ordinal-scaled", make: o(replicas(4), ordinal, claims), begin: o(replicas(2)), end: o(replicas(4)), there: scaled(2)},
		{
			name: "ordinal-in-place", make: o(replicas(3), ordinal, claims, inPlace), begin: o(partition(1), nextImage),
			end: o(partition(0)), there: updated(2),
		},
	}
}

type predicate = func(*v1beta1.RollSetStatus) bool

// updated checks that n pods are updated, and all ready.
func updated(n int32) predicate {
	return func(s *v1beta1.RollSetStatus) bool {
		return s.UpdatedReplicas == n && s.ReadyReplicas == s.Replicas && s.CurrentRevision != s.UpdateRevision
	}
}

// some checks that more than one pod is updated, and not all are.
func some(s *v1beta1.RollSetStatus) bool {
	return s.UpdatedReplicas > 1 && s.UpdatedReplicas < s.Replicas
}

// stuck checks that the updated one of the given number of pods is not ready.
func stuck(pods int32) predicate {
	return func(s *v1beta1.RollSetStatus) bool {
		return s.Replicas == pods && s.UpdatedReplicas == 1 && s.ReadyReplicas == pods-1
	}
}

// scaled checks that the set has the given number of pods, and nothing is left to do.
func scaled(n int32) predicate {
	return func(s *v1beta1.RollSetStatus) bool { return s.Replicas == n && complete(s) }
}

func stalled(s *v1beta1.RollSetStatus) bool {
	return condition(s, v1beta1.ConditionStalled).Status == metav1.ConditionTrue
}

func o(options ...option) []option { return options }

// newSet returns a set with the options. Its pods are labeled app=<name>.
func newSet(namespace, name string, options []option) *v1beta1.RollSet {
	labels := map[string]string{"app": name}
	set := &v1beta1.RollSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.RollSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(1)),
					Containers:                    []corev1.Container{{Name: "main", Image: "nginx:1"}},
				},
			},
		},
	}
	for _, option := range options {
		option(set)
	}
	return set
}

func replicas(n int32) option { return func(s *v1beta1.RollSet) { s.Spec.Replicas = &n } }

func partition(n int32) option {
	return func(s *v1beta1.RollSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(n)) }
}

func oneByOne(s *v1beta1.RollSet) {
	s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
}

// allAtOnce leaves no choice of pods, because versions may choose in another order.
func allAtOnce(s *v1beta1.RollSet) {
	s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("100%"))
}

func surge(s *v1beta1.RollSet) {
	r := &s.Spec.UpdateStrategy.RollingUpdate
	r.MaxSurge, r.MaxUnavailable = new(intstr.FromInt32(1)), new(intstr.FromInt32(0))
}

func paused(yes bool) option {
	return func(s *v1beta1.RollSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = yes }
}

func inPlace(s *v1beta1.RollSet) {
	s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePod
}

func strategy(t v1beta1.UpdateStrategyType) option {
	return func(s *v1beta1.RollSet) { s.Spec.UpdateStrategy.Type = t }
}

func image(name string) option {
	return func(s *v1beta1.RollSet) { s.Spec.Template.Spec.Containers[0].Image = name }
}

// nextImage is an image that a container can be moved to in place; another one each time.
func nextImage(s *v1beta1.RollSet) {
	s.Spec.Template.Spec.Containers[0].Image = "nginx:" + strconv.FormatInt(s.Generation+1, 10)
}

// next gives the set another template, whose pods work as well as those before.
func next(s *v1beta1.RollSet) {
	s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RELEASE", Value: strconv.FormatInt(s.Generation+1, 10)}}
}

// port gives the set a port. A negative number is one that no container can have, which the CRD cannot know.
func port(n int32) option {
	return func(s *v1beta1.RollSet) {
		s.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: n}}
	}
}

func ordinal(s *v1beta1.RollSet) {
	s.Spec.PodIdentity, s.Spec.ServiceName = v1beta1.OrdinalIdentity, s.Name
}

func parallel(s *v1beta1.RollSet) { s.Spec.PodManagementPolicy = v1beta1.ParallelPodManagement }

func reserved(s *v1beta1.RollSet) {
	s.Spec.Ordinals = &v1beta1.Ordinals{Start: 2}
	s.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(3)}
}

func claims(s *v1beta1.RollSet) {
	s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}}
}

func marked(s *v1beta1.RollSet) { s.Spec.Template.Labels[mark] = "on" }

func preDelete(s *v1beta1.RollSet) { s.Spec.Lifecycle = &v1beta1.Lifecycle{PreDelete: hook()} }

func inPlaceUpdate(s *v1beta1.RollSet) {
	s.Spec.Lifecycle = &v1beta1.Lifecycle{InPlaceUpdate: hook()}
}

func hook() *v1beta1.LifecycleHook {
	return &v1beta1.LifecycleHook{LabelsHandler: map[string]string{mark: "on"}}
}

func unhook(s *v1beta1.RollSet) { s.Spec.Lifecycle = nil }
