// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/testbed"
)

var _ = Describe("Neighbors", func() {
	f := newFixture()

	It("are not held up by a webhook that hangs for another namespace", func(ctx SpecContext) {
		onLocalCluster() // the API server must reach this process
		hook := hangFor(ctx, f.namespace)
		for i := range 25 { // more than there are workers
			f.createObject(ctx, newSet(fmt.Sprintf("slow-%d", i), 3))
		}
		Eventually(hook.Waiting.Load).WithContext(ctx).Should(BeNumerically(">=", 5), "creates that hang")
		ended := hook.Ended.Load()

		shop := newSet("shop", 3)
		shop.Namespace = makeNamespace(ctx)
		Expect(cluster.client.Create(ctx, shop)).To(Succeed())
		pods := &corev1.PodList{}
		Eventually(func() []corev1.Pod {
			Expect(cluster.client.List(ctx, pods, client.InNamespace(shop.Namespace))).To(Succeed())
			return pods.Items
		}).WithContext(ctx).Should(HaveLen(3))
		Expect(hook.Ended.Load()).To(Equal(ended), "creates that hung when the set came, and no more when it had its pods")
	})

	It("refuses a template whose pods a policy gives to somebody else, and makes no second one", func(ctx SpecContext) {
		policy := rewrite(ctx, f.namespace, `[JSONPatch{op: "replace", path: "/metadata/labels/app", value: "other"}]`, admissionv1.Create)
		f.awaitRewritten(ctx, func(pod *corev1.Pod) bool { return pod.Labels["app"] == "other" })
		set := f.create(ctx, newSet("web", 3))
		failure := f.awaitCondition(ctx, set, "ReplicaFailure", metav1.ConditionTrue, "InvalidTemplate")
		Expect(failure.Message).To(ContainSubstring(`the API server accepted the write and changed label app to "other", so that the selector does not match`))
		f.awaitCondition(ctx, set, "Stalled", metav1.ConditionTrue, "InvalidTemplate")
		f.quiet(ctx, 25*time.Second) // it is asked again after ten seconds
		Expect(len(f.podsWith(func(*corev1.Pod) bool { return true }))).To(BeNumerically("<=", 1), "pods that are none of the set's")

		f.delete(ctx, policy)
		f.awaitRewritten(ctx, func(pod *corev1.Pod) bool { return pod.Labels["app"] == "web" })
		f.awaitReady(ctx, f.change(ctx, set, release("2")))
	})

	It("serves while a policy takes its label off pods, and writes it less and less often", func(ctx SpecContext) {
		withAudit()
		rewrite(ctx, f.namespace, `[JSONPatch{op: "remove", path: "/metadata/labels/controller-revision-hash"}]`, admissionv1.Create, admissionv1.Update)
		f.awaitRewritten(ctx, func(pod *corev1.Pod) bool { return pod.Labels[v1beta1.RevisionLabel] == "" })
		log := auditFrom()
		set := f.create(ctx, newSet("web", 3))
		failure := f.awaitCondition(ctx, set, "ReplicaFailure", metav1.ConditionTrue, "FailedUpdate")
		Expect(failure.Message).To(ContainSubstring("the API server accepted the write and dropped label controller-revision-hash"))
		f.awaitPods(ctx, set, "three available pods", func(pods []*corev1.Pod) bool { return count(pods, isAvailable) == 3 })

		patches := func(name string) []request {
			return log.requests(func(r request) bool {
				return r.Namespace == f.namespace && r.Verb == "patch" && r.Resource == "pods" && r.Name == name && r.Code == http.StatusOK
			})
		}
		for _, pod := range f.pods(set) {
			Eventually(func() []request { return patches(pod.Name) }).WithContext(ctx).Should(HaveLen(3))
			all := patches(pod.Name)
			for i := range all[2:] { // one may follow at once, after a conflict
				Expect(all[i+2].At.Sub(all[i].At)).To(BeNumerically(">", 9*time.Second), "three patches of %s", pod.Name)
			}
		}
		Expect(count(f.pods(set), isAvailable)).To(Equal(3))
	})
})

// hangFor installs a webhook for creates of pods in a namespace that never answers.
func hangFor(ctx context.Context, namespace string) *testbed.HangingWebhook {
	GinkgoHelper()
	h, err := testbed.NewHangingWebhook(namespace)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(h.Close)
	Expect(cluster.client.Create(ctx, h.Config)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(cluster.client.Delete(ctx, h.Config)).To(Succeed()) })
	return h
}

// rewrite installs an admission policy that changes pods of a namespace by a JSON patch. It is removed when the spec ends.
func rewrite(ctx context.Context, namespace, patch string, on ...admissionv1.OperationType) client.Object {
	GinkgoHelper()
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "rewrite-"},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: on, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "ours", Expression: `has(object.metadata.labels) && 'controller-revision-hash' in object.metadata.labels`,
			}},
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: patch}}},
		},
	}
	Expect(cluster.client.Create(ctx, policy)).To(Succeed())
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	Expect(cluster.client.Create(ctx, binding)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(cluster.client.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(cluster.client.Delete(ctx, policy))).To(Succeed())
	})
	return binding
}

// awaitRewritten waits until the API server does to new pods what is wanted: it takes a while until it knows of a policy.
func (f *fixture) awaitRewritten(ctx context.Context, wanted func(*corev1.Pod) bool) {
	GinkgoHelper()
	Eventually(func() bool {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: f.namespace, Labels: map[string]string{"app": "web", v1beta1.RevisionLabel: "probe"}},
			Spec:       newSet("web", 1).Spec.Template.Spec,
		}
		Expect(cluster.client.Create(ctx, pod, client.DryRunAll)).To(Succeed())
		return wanted(pod)
	}).WithContext(ctx).Should(BeTrue())
}
