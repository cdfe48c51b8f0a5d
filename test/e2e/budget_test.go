// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	authorizationv1 "k8s.io/api/authorization/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed/manager"
)

// withBudget sets whether a set has a disruption budget of its own.
func withBudget(policy v1beta1.BudgetPolicy) option {
	return func(set *v1beta1.RollSet) {
		if set.Spec.Disruption == nil {
			set.Spec.Disruption = &v1beta1.Disruption{}
		}
		set.Spec.Disruption.PodDisruptionBudget = policy
	}
}

var _ = Describe("A disruption budget of its own", func() {
	f := newFixture()

	// budgets lists the budgets of the namespace, each as "name minAvailable".
	budgets := func(ctx context.Context) func() []string {
		return func() (all []string) {
			list := &policyv1.PodDisruptionBudgetList{}
			Expect(cluster.client.List(ctx, list, client.InNamespace(f.namespace))).To(Succeed())
			for i := range list.Items {
				all = append(all, fmt.Sprintf("%s %s", list.Items[i].Name, list.Items[i].Spec.MinAvailable))
			}
			return all
		}
	}
	eventually := func(ctx context.Context, wanted gomegatypes.GomegaMatcher) {
		GinkgoHelper()
		Eventually(budgets(ctx)).WithContext(ctx).Should(wanted)
	}

	It("follows the limits of the set, and comes back as it was", core, func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 4, maxUnavailable("1"), withBudget(v1beta1.AutoBudget)))
		f.awaitCondition(ctx, set, v1beta1.ConditionDisruptionReady, metav1.ConditionTrue, v1beta1.ReasonInForce)
		eventually(ctx, ConsistOf("web 3"))
		set = f.change(ctx, set, scaledTo(6), maxUnavailable("50%"))
		eventually(ctx, ConsistOf("web 3"))
		set = f.change(ctx, set, maxUnavailable("2"))
		eventually(ctx, ConsistOf("web 4"))

		own := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web"}}
		update(ctx, own, own, func() { own.Spec.MinAvailable = new(intstr.FromInt32(0)) })
		eventually(ctx, ConsistOf("web 4"))
		f.delete(ctx, own)
		eventually(ctx, ConsistOf("web 4"))

		f.delete(ctx, set)
		eventually(ctx, BeEmpty())
	})

	It("is not there beside another one", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 2, withBudget(v1beta1.AutoBudget)))
		eventually(ctx, ConsistOf("web 1"))
		foreign := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
		foreign.Spec.Selector, foreign.Spec.MinAvailable = &metav1.LabelSelector{}, new(intstr.FromInt32(2))
		f.createObject(ctx, foreign)
		c := f.awaitCondition(ctx, set, v1beta1.ConditionDisruptionReady, metav1.ConditionFalse, v1beta1.ReasonForeignBudget)
		Expect(c.Message).To(ContainSubstring("because all selects its pods"))
		eventually(ctx, ConsistOf("all 2"))
		f.delete(ctx, foreign)
		f.awaitCondition(ctx, set, v1beta1.ConditionDisruptionReady, metav1.ConditionTrue, v1beta1.ReasonInForce)
		eventually(ctx, ConsistOf("web 1"))
		set = f.change(ctx, set, withBudget(v1beta1.NoBudget))
		eventually(ctx, BeEmpty())
		f.awaitStatus(ctx, set, "no condition about disruption", func(s *v1beta1.RollSetStatus) bool {
			for _, c := range s.Conditions {
				if c.Type == v1beta1.ConditionDisruptionReady {
					return false
				}
			}
			return true
		})
	})
})

var _ = Describe("Rights to nodes and disruption budgets", Serial, func() {
	f := newFixture()

	// may reports whether the manager may do what spec.disruption needs.
	may := func(ctx context.Context) bool {
		GinkgoHelper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: manager.User, ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "policy", Resource: "poddisruptionbudgets", Verb: "delete"},
		}}
		Expect(cluster.client.Create(ctx, review)).To(Succeed())
		return review.Status.Allowed
	}

	It("may come after the start of the manager, which works without", func(ctx SpecContext) {
		var bindings []*rbacv1.ClusterRoleBinding
		grant := func(ctx context.Context) {
			GinkgoHelper()
			for _, b := range bindings {
				b.ResourceVersion, b.UID = "", ""
				Expect(client.IgnoreAlreadyExists(cluster.client.Create(ctx, b))).To(Succeed())
			}
		}
		for _, role := range manager.DisruptionRoles() {
			b := &rbacv1.ClusterRoleBinding{}
			Expect(cluster.client.Get(ctx, client.ObjectKey{Name: manager.BindingOf(role)}, b)).To(Succeed())
			bindings = append(bindings, b)
		}
		DeferCleanup(func(ctx SpecContext) {
			grant(ctx)
			Expect(cluster.manager.stop()).To(Succeed()) // the next spec starts one that knows
		})
		for _, b := range bindings {
			f.delete(ctx, b.DeepCopy())
		}
		Eventually(may).WithContext(ctx).WithArguments(ctx).Should(BeFalse())
		Expect(cluster.manager.stop()).To(Succeed())
		_, from := cluster.manager.logged(0)
		Expect(cluster.manager.start()).To(Succeed(), "it is ready without the rights")

		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 2, replacingOnDrain(), withBudget(v1beta1.AutoBudget))))
		c := f.awaitCondition(ctx, set, v1beta1.ConditionDisruptionReady, metav1.ConditionFalse, v1beta1.ReasonMissingRights)
		Expect(c.Message).To(And(ContainSubstring("the manager may not list nodes"), ContainSubstring("install the manager's component disruption")))
		log, _ := cluster.manager.logged(from)
		for line := range strings.Lines(log) {
			if strings.Contains(line, "because it is being terminated") { // the namespace of an earlier spec
				continue
			}
			Expect(line).NotTo(ContainSubstring("forbidden"))
			if !strings.Contains(line, `"namespace":"e2e-`) || strings.Contains(line, f.namespace) { // not about a set of an earlier spec
				Expect(line).NotTo(ContainSubstring(`"level":"error"`))
			}
		}

		grant(ctx)
		f.awaitCondition(ctx, set, v1beta1.ConditionDisruptionReady, metav1.ConditionTrue, v1beta1.ReasonInForce)
		Expect(cluster.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "web"}, &policyv1.PodDisruptionBudget{})).To(Succeed())

		if testing.Short() { // the manager asks once a minute; its own tests withdraw rights too
			return
		}
		for _, b := range bindings {
			f.delete(ctx, b.DeepCopy())
		}
		f.awaitCondition(ctx, set, v1beta1.ConditionDisruptionReady, metav1.ConditionFalse, v1beta1.ReasonMissingRights)
		f.awaitReady(ctx, f.change(ctx, set, release("2")))
	})
})
