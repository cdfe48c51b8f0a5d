// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("Claims", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) {
		f = newFixture(ctx)
		f.set.Spec.PodIdentity = v1beta1.OrdinalIdentity
		f.set.Spec.PodManagementPolicy = v1beta1.ParallelPodManagement
		f.set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				},
			},
		}}
	})

	claim := func(name string) func(Gomega) *corev1.PersistentVolumeClaim {
		return func(g Gomega) *corev1.PersistentVolumeClaim {
			c := &corev1.PersistentVolumeClaim{}
			g.Expect(shared.client.Get(f, client.ObjectKey{Namespace: f.namespace, Name: name}, c)).To(Succeed())
			return c
		}
	}

	It("are created with their pods, outlive them, and are used by the successors", func() {
		f.create()
		before := claim("data-web-1")(Default)
		Expect(before.Labels).To(HaveKeyWithValue(v1beta1.SetLabel, "web"))
		Expect(before.OwnerReferences).To(BeEmpty())
		f.setImage("v2")
		f.eventuallyComplete()
		Expect(claim("data-web-1")(Default).UID).To(Equal(before.UID))
		Expect(f.pods()[1].Spec.Volumes).To(ContainElement(HaveField("PersistentVolumeClaim.ClaimName", "data-web-1")))
	})

	It("are owned by the set if the policy deletes them with it, and follow a change of the policy", func() {
		f.set.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.PersistentVolumeClaimRetentionPolicy{
			WhenDeleted: v1beta1.DeleteClaims,
		}
		f.create()
		Expect(metav1.IsControlledBy(claim("data-web-0")(Default), f.set)).To(BeTrue())
		f.edit(func(set *v1beta1.RollSet) {
			set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1beta1.RetainClaims
		})
		Eventually(claim("data-web-0")).Should(HaveField("OwnerReferences", BeEmpty()))
	})

	It("grow when their template does, without a restart", func() {
		f.create()
		before := f.pods()
		f.edit(func(set *v1beta1.RollSet) {
			set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		for _, name := range []string{"data-web-0", "data-web-1", "data-web-2"} {
			Eventually(func(g Gomega) string {
				size := claim(name)(g).Status.Capacity[corev1.ResourceStorage]
				return size.String()
			}).Should(Equal("2Gi"))
		}
		for i, pod := range f.pods() {
			Expect(pod.UID).To(Equal(before[i].UID))
		}
	})
})
