// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
)

var _ = Describe("A lifecycle hook", func() {
	const mark = "example.com/hook"
	var f *fixture
	hook := &v1alpha1.LifecycleHook{FinalizersHandler: []string{mark}}
	BeforeEach(func(ctx SpecContext) {
		f = newFixture(ctx)
		f.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
		f.set.Spec.Template.Finalizers = []string{mark}
	})
	// Pods have the finalizers of the template.
	unmark := func() {
		GinkgoHelper()
		for _, pod := range f.pods() {
			unmarked := pod.DeepCopy()
			unmarked.Finalizers = nil
			Expect(client.IgnoreNotFound(shared.client.Patch(f, unmarked, client.MergeFrom(&pod)))).To(Succeed())
		}
	}
	states := func() []string {
		var all []string
		for _, pod := range f.pods() {
			if state := pod.Labels[v1alpha1.LifecycleStateLabel]; state != "" {
				all = append(all, state)
			}
		}
		return all
	}
	AfterEach(func() {
		f.edit(func(set *v1alpha1.RollSet) { set.Spec.Replicas, set.Spec.Lifecycle = new(int32(0)), nil })
		Eventually(func() []corev1.Pod { unmark(); return f.pods() }).Should(BeEmpty())
	})

	It("before deletion holds the pod, is named, and is forgotten when the pod stays", func() {
		f.set.Spec.Lifecycle = &v1alpha1.Lifecycle{PreDelete: hook}
		f.create()
		f.edit(func(set *v1alpha1.RollSet) { set.Spec.Replicas = new(int32(2)) })
		f.eventuallyCondition("Progressing", metav1.ConditionTrue, "lifecycle hook preDelete waits until finalizer "+mark+" is gone")
		Expect(states()).To(ConsistOf("PreparingDelete"))
		Consistently(f.pods).Should(HaveLen(3))
		f.edit(func(set *v1alpha1.RollSet) { set.Spec.Replicas = new(int32(3)) })
		f.eventuallyComplete()
		Expect(states()).To(ConsistOf("Normal"))
		f.edit(func(set *v1alpha1.RollSet) { set.Spec.Replicas = new(int32(2)) })
		Eventually(states).Should(ConsistOf("PreparingDelete"))
		unmark()
		f.eventuallyComplete()
		Expect(f.requests("delete")).To(Equal(1))
	})

	It("holds a pod before an update in place, and after it until its marks are back", func() {
		rolling := &f.set.Spec.UpdateStrategy.RollingUpdate
		rolling.PodUpdatePolicy = v1alpha1.InPlaceIfPossiblePod
		f.set.Spec.Replicas = new(int32(1))
		f.set.Spec.Lifecycle = &v1alpha1.Lifecycle{InPlaceUpdate: hook}
		f.create()
		before := f.snapshot()
		f.setImage("v2")
		f.eventuallyCondition("Progressing", metav1.ConditionTrue, "lifecycle hook inPlaceUpdate waits until finalizer "+mark+" is gone")
		f.expectSamePods(before, 0)
		unmark()
		f.eventuallyCondition("Progressing", metav1.ConditionTrue, "lifecycle hook inPlaceUpdate waits for finalizer "+mark)
		f.expectSamePods(before, 1)
		Expect(f.get().Status.AvailableReplicas).To(BeZero())
		pod := f.pods()[0]
		marked := pod.DeepCopy()
		marked.Finalizers = []string{mark}
		Expect(shared.client.Patch(f, marked, client.MergeFrom(&pod))).To(Succeed())
		f.eventuallyComplete()
		Expect(states()).To(ConsistOf("Normal"))
	})

	It("that the spec no longer has releases its pods", func() {
		f.set.Spec.Lifecycle = &v1alpha1.Lifecycle{PreDelete: hook}
		f.create()
		f.setImage("v2")
		Eventually(states).Should(ConsistOf("PreparingDelete"))
		f.edit(func(set *v1alpha1.RollSet) { set.Spec.Lifecycle = nil })
		Eventually(func() int { return f.requests("delete") }).Should(BeNumerically(">=", 1))
		Eventually(func(g Gomega) {
			unmark()
			g.Expect(f.get().Status.Conditions).To(haveCondition("Ready", metav1.ConditionTrue))
		}).Should(Succeed())
	})
})
