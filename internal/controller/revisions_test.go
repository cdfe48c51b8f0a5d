// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/revision"
)

var _ = Describe("Revisions", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) {
		f = newFixture(ctx)
		f.set.Spec.Replicas = new(int32(1))
	})

	DescribeTable("are not made of defaults that are spelled out or left out", func(policy v1beta1.PodUpdatePolicy) {
		f.set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = policy
		f.set.Spec.Template.Spec.Volumes = []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}}},
			{Name: "scratch"},
		}
		f.create()
		pods, manifest := f.pods(), f.set.Spec.Template.DeepCopy()
		live := &appsv1.StatefulSet{ // as the API server completes the template of another kind
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: f.namespace},
			Spec:       appsv1.StatefulSetSpec{Selector: f.set.Spec.Selector, Template: *manifest},
		}
		Expect(shared.client.Create(f, live, client.DryRunAll)).To(Succeed())
		Expect(live.Spec.Template.Spec.Containers[0].TerminationMessagePath).NotTo(BeEmpty())
		for _, template := range []*corev1.PodTemplateSpec{&live.Spec.Template, manifest} {
			f.edit(func(set *v1beta1.RollSet) { set.Spec.Template = *template })
			f.eventuallyComplete()
			Consistently(f.pods).Should(Equal(pods))
			Expect(f.revisions()).To(HaveLen(1))
		}
		f.edit(func(set *v1beta1.RollSet) { set.Spec.Template = live.Spec.Template })
		f.setImage("v2")
		f.eventuallyComplete()
		Expect(f.revisions()).To(HaveLen(2))
		wanted := Equal(pods[0].UID)
		if policy == v1beta1.RecreatePod {
			wanted = Not(wanted)
		}
		Expect(f.pods()[0].UID).To(wanted)
	},
		Entry(nil, v1beta1.RecreatePod),
		Entry(nil, v1beta1.InPlaceIfPossiblePod),
		Entry(nil, v1beta1.InPlaceOnlyPod),
	)

	It("get another name if theirs is taken", func() {
		Expect(shared.client.Create(f, f.set, client.DryRunAll)).To(Succeed())
		f.set.UID, f.set.ResourceVersion = "", ""
		resolution, err := revision.Resolve(revision.Input{Set: f.set})
		Expect(err).NotTo(HaveOccurred())
		foreign := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: resolution.Create.Name, Namespace: f.namespace},
			Data:       runtime.RawExtension{Raw: []byte(`{}`)},
		}
		Expect(shared.client.Create(f, foreign)).To(Succeed())
		f.create()
		Expect(f.get().Status.CollisionCount).To(HaveValue(BeEquivalentTo(1)))
		Expect(f.set.Status.UpdateRevision).NotTo(Equal(foreign.Name))
	})

	It("can be lost without a restart of pods", func() {
		f.create()
		before := names(f.pods())
		lost := f.revisions()[0]
		Expect(shared.client.Delete(f, &lost)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(f.revisions()).To(HaveLen(1))
			g.Expect(f.revisions()[0].UID).NotTo(Equal(lost.UID))
		}).Should(Succeed())
		Expect(f.revisions()[0].Name).To(Equal(lost.Name))
		Expect(names(f.pods())).To(Equal(before))
	})
})
