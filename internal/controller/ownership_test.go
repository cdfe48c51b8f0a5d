// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("Ownership", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) { f = newFixture(ctx) })

	// bare is a pod that the set did not make.
	bare := func(name string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace, Labels: labels},
			Spec:       f.set.Spec.Template.Spec,
		}
	}
	controllerOfPod := func(name string) func(Gomega) string {
		return func(g Gomega) string {
			pod := &corev1.Pod{}
			g.Expect(shared.client.Get(f, client.ObjectKey{Namespace: f.namespace, Name: name}, pod)).To(Succeed())
			if owner := metav1.GetControllerOf(pod); owner != nil {
				return owner.Name
			}
			return ""
		}
	}
	relabel := func(name, app string) {
		GinkgoHelper()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}}
		patch := []byte(`{"metadata":{"labels":{"app":"` + app + `"}}}`)
		Expect(shared.client.Patch(f, pod, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
	}

	It("ends when a pod loses the label of the selector, and returns with the label", func() {
		// The manager may see the label before the edit. Then there is a pod too many, and the hook keeps it from being deleted.
		f.set.Spec.Lifecycle = &v1beta1.Lifecycle{PreDelete: &v1beta1.LifecycleHook{LabelsHandler: map[string]string{"app": "web"}}}
		f.create()
		name := f.pods()[0].Name
		relabel(name, "other")
		Eventually(controllerOfPod(name)).Should(BeEmpty())
		f.eventuallyComplete()
		Expect(names(f.pods())).NotTo(ContainElement(name))
		Consistently(controllerOfPod(name)).Should(BeEmpty())

		relabel(name, "web")
		f.edit(func(set *v1beta1.RollSet) { set.Spec.Replicas = new(int32(4)) })
		Eventually(controllerOfPod(name)).Should(Equal("web"))
		f.eventuallyComplete()
	})

	It("extends to matching pods without a controller, before new ones are created", func() {
		Expect(shared.client.Create(f, bare("lonely", map[string]string{"app": "web"}))).To(Succeed())
		f.set.Spec.UpdateStrategy.Type = v1beta1.OnDeleteStrategy
		Expect(shared.client.Create(f, f.set)).To(Succeed())
		Eventually(controllerOfPod("lonely")).Should(Equal("web"))
		Eventually(f.pods).Should(HaveLen(3))
		Expect(f.requests("create")).To(Equal(2))
	})

	It("never extends to pods of another controller", func() {
		other := bare("taken", map[string]string{"app": "web"})
		other.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other", UID: "other", Controller: new(true),
		}}
		Expect(shared.client.Create(f, other)).To(Succeed())
		f.create()
		Expect(controllerOfPod("taken")(Default)).To(Equal("other"))
		Eventually(f.warnings).Should(Equal([]string{
			"SelectorOverlap: The selector also matches pod taken of ReplicaSet other: what others control is not adopted, and stays " +
				"beside the pods of this set. Give one of both another selector. To move pods over instead, raise spec.replicas by 1, because pods " +
				"above it are deleted, then delete their owner with --cascade=orphan",
		}))
	})

	It("ends when the set is deleted with --cascade=orphan, and its pods stay", func() {
		f.create()
		before := names(f.pods())
		Expect(shared.client.Delete(f, f.set, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		// No garbage collector runs here, so the set stays and would have every chance.
		victim := f.pods()[0]
		Expect(shared.client.Delete(f, &victim)).To(Succeed())
		Expect(shared.client.Create(f, bare("lonely", map[string]string{"app": "web"}))).To(Succeed())
		Eventually(f.pods).Should(HaveLen(2))
		Consistently(controllerOfPod("lonely")).Should(BeEmpty())
		Expect(before).To(ContainElements(names(f.pods())))
	})
})
