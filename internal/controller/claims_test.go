// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
)

var _ = Describe("Claims", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) {
		f = newFixture(ctx)
		f.set.Spec.PodIdentity = v1alpha1.OrdinalIdentity
		f.set.Spec.PodManagementPolicy = v1alpha1.ParallelPodManagement
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
		Expect(before.Labels).To(HaveKeyWithValue(v1alpha1.SetLabel, "web"))
		Expect(before.OwnerReferences).To(BeEmpty())
		f.setImage("v2")
		f.eventuallyComplete()
		Expect(claim("data-web-1")(Default).UID).To(Equal(before.UID))
		Expect(f.pods()[1].Spec.Volumes).To(ContainElement(HaveField("PersistentVolumeClaim.ClaimName", "data-web-1")))
	})

	It("are owned by the set if the policy deletes them with it, and follow a change of the policy", func() {
		f.set.Spec.PersistentVolumeClaimRetentionPolicy = &v1alpha1.PersistentVolumeClaimRetentionPolicy{
			WhenDeleted: v1alpha1.DeleteClaims,
		}
		f.create()
		Expect(metav1.IsControlledBy(claim("data-web-0")(Default), f.set)).To(BeTrue())
		f.edit(func(set *v1alpha1.RollSet) {
			set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = v1alpha1.RetainClaims
		})
		Eventually(claim("data-web-0")).Should(HaveField("OwnerReferences", BeEmpty()))
	})

	It("are deleted with a pod that scaling deletes, if the policy asks for it", func() {
		f.set.Spec.PersistentVolumeClaimRetentionPolicy = &v1alpha1.PersistentVolumeClaimRetentionPolicy{
			WhenScaled: v1alpha1.DeleteClaims,
		}
		f.create()
		f.edit(func(set *v1alpha1.RollSet) { set.Spec.Replicas = new(int32(2)) })
		f.eventuallyComplete()
		// There is no garbage collector here; it would follow this reference.
		Expect(claim("data-web-2")(Default).OwnerReferences).To(ConsistOf(And(HaveField("Kind", "Pod"), HaveField("Name", "web-2"))))
		Expect(claim("data-web-1")(Default).OwnerReferences).To(BeEmpty())
	})

	It("of another owner hold back one pod, and the status names it", func() {
		other := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: "data-web-1", Namespace: f.namespace, Labels: map[string]string{v1alpha1.SetLabel: "b-web"},
			},
			Spec: f.set.Spec.VolumeClaimTemplates[0].Spec,
		}
		Expect(shared.client.Create(f, other)).To(Succeed())
		Expect(shared.client.Create(f, f.set)).To(Succeed())
		f.eventuallyCondition("ReplicaFailure", metav1.ConditionTrue, "claim data-web-1 belongs to the set b-web")
		Eventually(func() []string { return names(f.pods()) }).Should(Equal([]string{"web-0", "web-2"}))
		Expect(claim("data-web-1")(Default).Labels).To(HaveKeyWithValue(v1alpha1.SetLabel, "b-web"))
	})

	It("are mounted by the pods of a revision after the spec has lost their template", func() {
		f.set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		f.create()
		before := claim("data-web-0")(Default)
		f.edit(func(set *v1alpha1.RollSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(2))
			set.Spec.VolumeClaimTemplates = nil
			set.Spec.Template.Spec.Containers[0].VolumeMounts = nil
		})
		f.eventuallyCondition("Progressing", metav1.ConditionTrue, "1 of 3 pods updated, as the partition wants it")
		Expect(f.pods()[2].Spec.Volumes).NotTo(ContainElement(HaveField("Name", "data")))
		lost := f.pods()[0]
		Expect(shared.client.Delete(f, &lost, client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(f.pods).Should(ContainElement(And(
			HaveField("Name", "web-0"), HaveField("UID", Not(Equal(lost.UID))),
			HaveField("Spec.Volumes", ContainElement(HaveField("PersistentVolumeClaim.ClaimName", "data-web-0"))))))
		Expect(claim("data-web-0")(Default).UID).To(Equal(before.UID))

		// A user takes the note of the templates off the revision, and the claim away: no pod comes without its data.
		gone := claim("data-web-1")(Default)
		Expect(shared.client.Delete(f, gone)).To(Succeed())
		Expect(shared.client.Patch(f, gone, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		for _, revision := range f.revisions() {
			edited := revision.DeepCopy()
			delete(edited.Annotations, "apps.rollset.dev/claim-templates")
			Expect(shared.client.Patch(f, edited, client.MergeFrom(&revision))).To(Succeed())
		}
		lost = f.pods()[1]
		Expect(shared.client.Delete(f, &lost, client.GracePeriodSeconds(0))).To(Succeed())
		f.eventuallyCondition("ReplicaFailure", metav1.ConditionTrue, "claim data-web-1 does not exist, and the claim template data")
		Expect(names(f.pods())).To(Equal([]string{"web-0", "web-2"}))
	})

	It("grow when their template does, without a restart", func() {
		f.create()
		before := f.pods()
		f.edit(func(set *v1alpha1.RollSet) {
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
