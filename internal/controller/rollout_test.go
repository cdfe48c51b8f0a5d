// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
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
			Expect(pod.Name).To(Equal("web-" + pod.Labels[v1beta1.InstanceIDLabel]))
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

	It("with ordinals names its pods by them and keeps the order", func() {
		f.set.Spec.PodIdentity = v1beta1.OrdinalIdentity
		f.set.Spec.ServiceName = "web"
		f.set.Spec.Ordinals = &v1beta1.Ordinals{Start: 5}
		f.set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(6)}
		f.create()
		pods := f.pods()
		Expect(names(pods)).To(Equal([]string{"web-5", "web-7", "web-8"}))
		Expect(pods[1].Spec.Hostname).To(Equal("web-7"))
		Expect(pods[1].Spec.Subdomain).To(Equal("web"))
		Expect(pods[1].Labels).To(HaveKeyWithValue(v1beta1.PodIndexLabel, "7"))
		Expect(pods[1].Labels).To(HaveKeyWithValue(v1beta1.PodNameLabel, "web-7"))
		f.setImage("v2")
		f.eventuallyComplete()
		Expect(names(f.pods())).To(Equal([]string{"web-5", "web-7", "web-8"}))
	})
})
