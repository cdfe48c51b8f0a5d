// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1alpha1"
)

var _ = Describe("A set", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) { f = newFixture(ctx) })

	It("gets its pods, with one request each and no reads", func() {
		f.set.Spec.Replicas = new(int32(20))
		f.create()
		Expect(f.requests("create")).To(Equal(20))
		Expect(f.requests("get")).To(BeZero())
		for _, pod := range f.pods() {
			owner := metav1.GetControllerOf(&pod)
			Expect(owner.BlockOwnerDeletion).To(HaveValue(BeTrue()))
			Expect(pod.Name).To(Equal("web-" + pod.Labels[v1alpha1.InstanceIDLabel]))
		}
	})

	It("writes nothing once it is complete", func() {
		f.create()
		version := f.get().ResourceVersion
		Consistently(func() string { return f.get().ResourceVersion }).Should(Equal(version))
		Expect(f.requests("create")).To(Equal(3))
		Expect(f.requests("delete")).To(BeZero())
	})

	It("has every field in its first status", func() {
		f.create()
		status := f.get().Status
		Expect(status.LabelSelector).To(Equal("app=web"))
		Expect(status.Replicas).To(BeEquivalentTo(3))
		Expect(status.AvailableReplicas).To(BeEquivalentTo(3))
		Expect(status.CurrentRevision).To(Equal(status.UpdateRevision))
		for _, name := range []string{"Ready", "Available"} {
			Expect(status.Conditions).To(haveCondition(name, metav1.ConditionTrue))
		}
		for _, c := range status.Conditions {
			Expect(c.ObservedGeneration).To(Equal(f.set.Generation), c.Type)
		}
	})

	It("scales up and down", func() {
		f.create()
		f.edit(func(set *v1alpha1.RollSet) { set.Spec.Replicas = new(int32(7)) })
		f.eventuallyComplete()
		f.edit(func(set *v1alpha1.RollSet) { set.Spec.Replicas = new(int32(2)) })
		f.eventuallyComplete()
		f.edit(func(set *v1alpha1.RollSet) { set.Spec.Replicas = new(int32(0)) })
		f.eventuallyComplete()
	})

	DescribeTable("moves its pods to a new template within its limits",
		func(limits func(*v1alpha1.RollingUpdate), want string) {
			f.set.Spec.Replicas = new(int32(5))
			limits(&f.set.Spec.UpdateStrategy.RollingUpdate)
			f.create()
			old := f.get().Status.CurrentRevision
			witness := f.watch(5)
			Eventually(witness.extremes).Should(Equal("most 5, least available 5"))
			f.setImage("v2")
			f.eventuallyComplete()
			Expect(f.set.Status.CurrentRevision).NotTo(Equal(old))
			Expect(witness.extremes()).To(Equal(want))
		},
		Entry("one at a time", func(r *v1alpha1.RollingUpdate) {
			r.MaxUnavailable = new(intstr.FromInt32(1))
		}, "most 5, least available 4"),
		Entry("with surge, and never fewer than before", func(r *v1alpha1.RollingUpdate) {
			r.MaxUnavailable, r.MaxSurge = new(intstr.FromInt32(0)), new(intstr.FromInt32(2))
		}, "most 7, least available 5"),
	)

	It("stops at the partition, and goes back when it is raised", func() {
		f.set.Spec.Replicas = new(int32(4))
		f.set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(3))
		f.create()
		old := f.get().Status.CurrentRevision
		atOld := func() int {
			n := 0
			for _, pod := range f.pods() {
				if pod.Labels[v1alpha1.RevisionLabel] == old && pod.DeletionTimestamp == nil {
					n++
				}
			}
			return n
		}
		f.setImage("v2")
		Eventually(func() string {
			s := f.get().Status
			return fmt.Sprintf("%d of %d", s.UpdatedAvailableReplicas, s.ExpectedUpdatedReplicas)
		}).Should(Equal("1 of 1"))
		Consistently(atOld).Should(Equal(3))
		f.edit(func(set *v1alpha1.RollSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(4))
		})
		Eventually(atOld).Should(Equal(4))
		f.edit(func(set *v1alpha1.RollSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(0))
		})
		f.eventuallyComplete()
		Expect(f.set.Status.CurrentRevision).To(Equal(f.set.Status.UpdateRevision))
	})

	It("is repaired by the next template after a bad one", func() {
		f.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
		f.create()
		f.setImage("broken")
		Eventually(func() int32 { return f.get().Status.AvailableReplicas }).Should(BeEquivalentTo(2))
		f.eventuallyCondition("Progressing", metav1.ConditionTrue, "waiting for web-")
		Consistently(func() int32 { return f.get().Status.AvailableReplicas }).Should(BeEquivalentTo(2))
		f.setImage("v3")
		f.eventuallyComplete()
	})

	It("with ordinals names its pods by them and keeps the order", func() {
		f.set.Spec.PodIdentity = v1alpha1.OrdinalIdentity
		f.set.Spec.ServiceName = "web"
		f.set.Spec.Ordinals = &v1alpha1.Ordinals{Start: 5}
		f.set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(6)}
		f.create()
		pods := f.pods()
		Expect(names(pods)).To(Equal([]string{"web-5", "web-7", "web-8"}))
		Expect(pods[1].Spec.Hostname).To(Equal("web-7"))
		Expect(pods[1].Spec.Subdomain).To(Equal("web"))
		Expect(pods[1].Labels).To(HaveKeyWithValue(v1alpha1.PodIndexLabel, "7"))
		Expect(pods[1].Labels).To(HaveKeyWithValue(v1alpha1.PodNameLabel, "web-7"))
		f.setImage("v2")
		f.eventuallyComplete()
		Expect(names(f.pods())).To(Equal([]string{"web-5", "web-7", "web-8"}))
	})
})
