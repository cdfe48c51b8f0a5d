// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("Disruption", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) { f = newFixture(ctx) })

	// own waits for the budget of the set, and returns it.
	own := func(minAvailable int) *policyv1.PodDisruptionBudget {
		GinkgoHelper()
		budget := &policyv1.PodDisruptionBudget{}
		Eventually(func(g Gomega) {
			g.Expect(shared.client.Get(f, client.ObjectKeyFromObject(f.set), budget)).To(Succeed())
			g.Expect(budget.Spec.MinAvailable.IntValue()).To(Equal(minAvailable))
			g.Expect(metav1.IsControlledBy(budget, f.set)).To(BeTrue())
		}).Should(Succeed())
		return budget
	}

	It("has a budget as soon as the manager has the right, and keeps it up to date", func(ctx SpecContext) {
		f.set.Spec.Disruption = &v1beta1.Disruption{PodDisruptionBudget: v1beta1.AutoBudget, OnDrain: v1beta1.ReplaceOnDrain}
		shared.rights.are("the manager may not list things")
		DeferCleanup(func() { shared.rights.are("") })
		f.create()
		f.eventuallyCondition(v1beta1.ConditionDisruptionReady, metav1.ConditionFalse, "the manager may not list things; install the manager's component disruption")
		shared.rights.are("")
		f.eventuallyCondition(v1beta1.ConditionDisruptionReady, metav1.ConditionTrue, "PodDisruptionBudget web keeps at least 2 of the pods available")
		own(2)
		f.edit(func(set *v1beta1.RollSet) { set.Spec.Replicas = new(int32(5)) })
		budget := own(4)

		edited := budget.DeepCopy()
		edited.Spec.MinAvailable, edited.Spec.MaxUnavailable = nil, new(intstr.FromInt32(0))
		Expect(shared.client.Patch(ctx, edited, client.MergeFrom(budget))).To(Succeed())
		Eventually(func() string {
			Expect(shared.client.Get(ctx, client.ObjectKeyFromObject(f.set), budget)).To(Succeed())
			return budget.Spec.MaxUnavailable.String() + " " + budget.Spec.MinAvailable.String()
		}).Should(Equal("<nil> 4"))

		f.edit(func(set *v1beta1.RollSet) { set.Spec.Disruption = nil })
		Eventually(func() bool {
			return apierrors.IsNotFound(shared.client.Get(ctx, client.ObjectKeyFromObject(f.set), &policyv1.PodDisruptionBudget{}))
		}).Should(BeTrue())
		Eventually(func() []metav1.Condition { return f.get().Status.Conditions }).ShouldNot(ContainElement(HaveField("Type", v1beta1.ConditionDisruptionReady)))
	})
})
