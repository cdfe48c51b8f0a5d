// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/podcontrol"
)

var _ = Describe("With failures,", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) { f = newFixture(ctx) })

	It("a full quota is reported, causes no loop, and is recovered from", func() {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota", Namespace: f.namespace}}
		allow := func(pods string) {
			GinkgoHelper()
			hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
			Expect(shared.client.Get(f, client.ObjectKeyFromObject(quota), quota)).To(Succeed())
			quota.Status.Hard = hard // its controller would copy it from the spec
			if quota.Status.Used == nil {
				quota.Status.Used = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
			}
			Expect(shared.client.Status().Update(f, quota)).To(Succeed())
		}
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}
		Expect(shared.client.Create(f, quota)).To(Succeed())
		allow("2")
		Expect(shared.client.Create(f, f.set)).To(Succeed())
		f.eventuallyCondition("ReplicaFailure", metav1.ConditionTrue, "exceeded quota")
		Eventually(f.pods).Should(HaveLen(2))
		attempts := f.requests("create")
		Consistently(func() int { return f.requests("create") }, 2*time.Second).Should(BeNumerically("<=", attempts+3))
		allow("10")
		f.eventuallyComplete()
		Expect(f.get().Status.Conditions).NotTo(haveCondition("ReplicaFailure", metav1.ConditionTrue))
	})

	It("a pod of another owner keeps its name, and blocks no other identity", func() {
		f.set.Spec.PodIdentity = v1beta1.OrdinalIdentity
		f.set.Spec.PodManagementPolicy = v1beta1.ParallelPodManagement
		foreign := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: f.namespace},
			Spec:       f.set.Spec.Template.Spec,
		}
		Expect(shared.client.Create(f, foreign)).To(Succeed())
		Expect(shared.client.Create(f, f.set)).To(Succeed())
		f.eventuallyCondition("ReplicaFailure", metav1.ConditionTrue, "the name is taken by a pod that has no controller")
		Eventually(func() []string { return names(f.pods()) }).Should(Equal([]string{"web-0", "web-2"}))
		attempts := f.requests("create")
		Consistently(func() int { return f.requests("create") }, 2*time.Second).Should(Equal(attempts))
		Expect(shared.client.Delete(f, foreign)).To(Succeed())
		f.eventuallyComplete()
	})

	It("a cache that lags leads to no surplus pod, and to no read", func() {
		shared.faults.setLag(f.namespace, 100*time.Millisecond)
		DeferCleanup(func() { shared.faults.setLag(f.namespace, 0) })
		f.set.Spec.Replicas = new(int32(5))
		f.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(2))
		witness := f.watch(5)
		f.create()
		f.setImage("v2")
		f.eventuallyComplete()
		Expect(witness.extremes()).To(Equal("most 5, least available 3"))
		Expect(f.requests("create")).To(Equal(10))
		Expect(f.requests("delete")).To(Equal(5))
		Expect(f.requests("get")).To(BeZero())
	})

	It("each batch has one event", func() {
		f.create()
		f.edit(func(set *v1beta1.RollSet) { set.Spec.Replicas = new(int32(0)) })
		f.eventuallyComplete()
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(shared.client.List(f, list, client.InNamespace(f.namespace))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(And(
				HaveField("Reason", podcontrol.SuccessfulCreate), HaveField("Note", HavePrefix("Created 3 pods web-")))))
			g.Expect(list.Items).To(ContainElement(And(
				HaveField("Reason", podcontrol.SuccessfulDelete), HaveField("Note", HavePrefix("Deleted 3 pods web-")))))
			g.Expect(list.Items).To(HaveLen(2))
		}).Should(Succeed())
	})
})
