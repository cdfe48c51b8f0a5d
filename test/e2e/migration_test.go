// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// The pods of a workload of another kind change hands while they run, as docs/migration.md describes.
var _ = Describe("Taking over a workload", func() {
	f := newFixture()

	It("runs a StatefulSet's pods and claims on without a restart, and moves them when they are to change", func(ctx SpecContext) {
		set := newSet("db", 3, ordinal(), parallel(), claiming("data"))
		f.createObject(ctx, headlessService("db"))
		old := statefulSetLike(set)
		f.createObject(ctx, old)
		before := f.awaitRunning(ctx, set, 3)
		claims := f.awaitClaims(ctx, "three bound claims", func(claims []*corev1.PersistentVolumeClaim) bool {
			return len(claims) == 3 && !containsUnbound(claims)
		})
		f.orphan(ctx, old)

		set = f.awaitReady(ctx, f.create(ctx, set))
		f.expectUntouched(set, before)
		Expect(uids(f.claims())).To(Equal(uids(claims)))
		Expect(set.Status.UpdatedReplicas).To(BeEquivalentTo(3))
		Expect(set.Status.VolumeClaims).To(HaveLen(1))

		By("changing the template")
		set = f.awaitReady(ctx, f.change(ctx, set, variable("A", "1")))
		for _, pod := range f.pods(set) {
			Expect(uids(before)).NotTo(ContainElement(pod.UID), "pod %s was to be replaced", pod.Name)
		}
		Expect(uids(f.claims())).To(Equal(uids(claims)), "each pod is to find its volume again")
	})

	It("runs a ReplicaSet's pods on without a restart", func(ctx SpecContext) {
		set := newSet("web", 4)
		old := replicaSetLike(set)
		f.createObject(ctx, old)
		before := f.awaitRunning(ctx, set, 4)
		f.orphan(ctx, old)

		set = f.awaitReady(ctx, f.create(ctx, set))
		f.expectUntouched(set, before)
	})

	It("runs a CloneSet's pods and claims on without a restart", func(ctx SpecContext) {
		set := newSet("web", 2, claiming("data"))
		for _, id := range []string{"bcdfg", "x7k2p"} {
			f.createObject(ctx, leftByCloneSet(set, set.Spec.VolumeClaimTemplates[0].DeepCopy(), id))
			pod := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
			f.createObject(ctx, leftByCloneSet(set, pod, id))
			for _, name := range cloneSetGates {
				Expect(turn(ctx, pod, name, corev1.ConditionTrue)).To(Succeed())
			}
		}
		before := f.awaitRunning(ctx, set, 2)
		claims := f.claims()

		set = f.awaitReady(ctx, f.create(ctx, set))
		f.expectUntouched(set, before)
		Expect(uids(f.claims())).To(Equal(uids(claims)))
	})

	It("rolls the pods that differ from the template, within maxUnavailable", func(ctx SpecContext) {
		set := newSet("web", 4, maxUnavailable("1"))
		old := replicaSetLike(set)
		f.createObject(ctx, old)
		before := f.awaitRunning(ctx, set, 4)
		f.orphan(ctx, old)

		variable("A", "1")(set)
		set = f.create(ctx, set)
		f.awaitReady(ctx, set)
		for _, pod := range f.pods(set) {
			Expect(uids(before)).NotTo(ContainElement(pod.UID), "pod %s was to be replaced", pod.Name)
		}
	})
})

// variable gives the main container a variable.
func variable(name, value string) option {
	return template(func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Env = append(t.Spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
	})
}

// statefulSetLike returns a StatefulSet whose manifest differs from the set's only in its kind.
func statefulSetLike(set *v1beta1.RollSet) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: set.Spec.Replicas, Selector: set.Spec.Selector, Template: *set.Spec.Template.DeepCopy(),
			ServiceName: set.Spec.ServiceName, PodManagementPolicy: appsv1.ParallelPodManagement,
			VolumeClaimTemplates: set.DeepCopy().Spec.VolumeClaimTemplates,
		},
	}
}

// replicaSetLike returns a ReplicaSet whose manifest differs from the set's only in its kind. As a Deployment's it has
// another name.
func replicaSetLike(set *v1beta1.RollSet) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: set.Name + "-5d9c7b6f8d"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: set.Spec.Replicas, Selector: set.Spec.Selector, Template: *set.Spec.Template.DeepCopy(),
		},
	}
}

// cloneSetGates are the readiness gates that each pod of a CloneSet has.
var cloneSetGates = []corev1.PodConditionType{"InPlaceUpdateReady", "KruisePodReady"}

// leftByCloneSet returns a pod, or a claim, as a CloneSet leaves it: named by its id, and with labels and gates of its own.
func leftByCloneSet(set *v1beta1.RollSet, o client.Object, id string) client.Object {
	o.SetLabels(map[string]string{
		"app": set.Name, "apps.kruise.io/cloneset-instance-id": id, v1beta1.RevisionLabel: set.Name + "-6c8f5d7b9c",
	})
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		o.Name = o.Name + "-" + set.Name + "-" + id
	case *corev1.Pod:
		o.Name = set.Name + "-" + id
		for _, name := range cloneSetGates {
			o.Spec.ReadinessGates = append(o.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: name})
		}
		template := set.Spec.VolumeClaimTemplates[0].Name
		o.Spec.Volumes = append(o.Spec.Volumes, corev1.Volume{Name: template, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: template + "-" + o.Name},
		}})
	}
	return o
}

// awaitRunning waits until the given number of pods match the set's selector and are available, with any controller.
func (f *fixture) awaitRunning(ctx context.Context, set *v1beta1.RollSet, n int) (pods []*corev1.Pod) {
	GinkgoHelper()
	f.await(ctx, fmt.Sprintf("%d pods of the old workload", n), func() error {
		pods = f.podsWith(func(pod *corev1.Pod) bool { return isAvailable(pod) && pod.Labels["app"] == set.Name })
		if len(pods) != n {
			return fmt.Errorf("%d are available", len(pods))
		}
		return nil
	})
	return pods
}

// orphan deletes a workload as kubectl delete --cascade=orphan does, and waits until it has released its pods.
func (f *fixture) orphan(ctx context.Context, old client.Object) {
	GinkgoHelper()
	f.delete(ctx, old, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	f.expectGone(ctx, old)
	f.await(ctx, "the pods to have no controller", func() error {
		for _, pod := range f.podsWith(isLive) {
			if owner := metav1.GetControllerOf(pod); owner != nil {
				return fmt.Errorf("%s %s controls pod %s", owner.Kind, owner.Name, pod.Name)
			}
		}
		return nil
	})
}

// expectUntouched expects the set to have the same pods as before, none of them restarted.
func (f *fixture) expectUntouched(set *v1beta1.RollSet, before []*corev1.Pod) {
	GinkgoHelper()
	now := f.pods(set)
	Expect(uids(now)).To(Equal(uids(before)))
	for _, pod := range now {
		Expect(isLive(pod)).To(BeTrue(), "pod %s is going", pod.Name)
		Expect(pod.Labels).To(HaveKeyWithValue(v1beta1.RevisionLabel, set.Status.UpdateRevision))
		for i := range pod.Status.ContainerStatuses {
			Expect(pod.Status.ContainerStatuses[i].RestartCount).To(BeZero())
		}
	}
}
