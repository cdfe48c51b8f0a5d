// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("Before pods are moved, the API server", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) { f = newFixture(ctx) })

	DescribeTable("is asked, and a template that it refuses touches none",
		func(spoil func(*corev1.PodSpec), words string) {
			f.create()
			before, deletes := names(f.pods()), f.requests("delete")
			f.edit(func(set *v1beta1.RollSet) { spoil(&set.Spec.Template.Spec) })
			f.eventuallyReason("ReplicaFailure", metav1.ConditionTrue, v1beta1.ReasonInvalidTemplate, words)
			f.eventuallyReason("Stalled", metav1.ConditionTrue, v1beta1.ReasonInvalidTemplate, words)
			f.eventuallyReason("Ready", metav1.ConditionFalse, v1beta1.ReasonInvalidTemplate, words)
			Consistently(func() []string { return names(f.pods()) }).Should(Equal(before))
			Expect(f.requests("delete")).To(Equal(deletes))
			Eventually(f.warnings).Should(ConsistOf(And(HavePrefix("InvalidTemplate: "), ContainSubstring(words))))
			f.edit(func(set *v1beta1.RollSet) {
				set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:v3"}}
			})
			f.eventuallyComplete()
			Expect(meta.FindStatusCondition(f.set.Status.Conditions, "Stalled")).To(BeNil())
		},
		Entry("for a bad name of a port", func(spec *corev1.PodSpec) {
			spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "No_Port", ContainerPort: 80}}
		}, `spec.containers[0].ports[0].name: Invalid value: "No_Port"`),
		Entry("for a volume that is not there", func(spec *corev1.PodSpec) {
			spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "missing", MountPath: "/data"}}
		}, `spec.containers[0].volumeMounts[0].name: Not found: "missing"`),
	)

	It("may deny a template by policy, and change its mind", func() {
		policy, binding := noLatest(f.namespace)
		Expect(shared.client.Create(f, policy)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(shared.client.Delete(ctx, policy))).To(Succeed()) })
		Expect(shared.client.Create(f, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(shared.client.Delete(ctx, binding))).To(Succeed()) })
		Eventually(func() error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: f.namespace}}
			pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:latest"}}
			return shared.client.Create(f, pod, client.DryRunAll)
		}).Should(MatchError(ContainSubstring("no image may be latest")))
		f.create()
		before := names(f.pods())
		f.setImage("latest")
		f.eventuallyReason("ReplicaFailure", metav1.ConditionTrue, v1beta1.ReasonInvalidTemplate, "no image may be latest")
		f.eventuallyReason("Progressing", metav1.ConditionFalse, v1beta1.ReasonInvalidTemplate, "0 of 3 pods updated; the API server refuses: pods of revision web-")
		Consistently(func() []string { return names(f.pods()) }).Should(Equal(before))
		Expect(shared.client.Delete(f, binding)).To(Succeed())
		f.eventuallyComplete()
	})

	It("does not refuse the template when a quota is full", func() {
		f.create()
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota", Namespace: f.namespace}}
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}
		Expect(shared.client.Create(f, quota)).To(Succeed())
		quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, quota.Spec.Hard // its controller would count
		Expect(shared.client.Status().Update(f, quota)).To(Succeed())
		f.setImage("v2")
		f.eventuallyReason("ReplicaFailure", metav1.ConditionTrue, v1beta1.ReasonFailedCreate, "exceeded quota")
		Expect(f.requests("delete")).To(Equal(1), "maxUnavailable pods, and no more")
		Expect(shared.client.Delete(f, quota)).To(Succeed())
		f.eventuallyComplete()
	})
})

var _ = Describe("A set that waits", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) { f = newFixture(ctx) })

	It("does not write its status repeatedly", func() {
		f.set.Spec.ProgressDeadlineSeconds = new(int32(600))
		f.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
		f.create()
		f.setImage("missing") // the kubelet reports in turns that it pulls, fails and backs off
		f.eventuallyCondition("Progressing", metav1.ConditionTrue, "1 of 3 pods updated; waiting for web-")
		version := ""
		Eventually(func() bool {
			before := version
			version = f.get().ResourceVersion
			return version == before
		}).MustPassRepeatedly(40).Should(BeTrue())
		w, err := shared.client.Watch(f, &v1beta1.RollSetList{}, client.InNamespace(f.namespace))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(w.Stop)
		Eventually(w.ResultChan()).Should(Receive()) // the set as it is
		Consistently(w.ResultChan(), 5*time.Second).ShouldNot(Receive())
	})
})

// eventuallyReason waits for a condition with a reason and a part of its message.
func (f *fixture) eventuallyReason(name string, status metav1.ConditionStatus, reason, message string) {
	GinkgoHelper()
	Eventually(func() *metav1.Condition { return meta.FindStatusCondition(f.get().Status.Conditions, name) }).Should(And(
		HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)),
		HaveField("ObservedGeneration", BeNumerically("==", f.set.Generation))))
}

// noLatest is a policy that denies pods of a namespace which run an image "latest".
func noLatest(namespace string) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			},
		}},
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{
		Expression: "object.spec.containers.all(c, !c.image.endsWith(':latest'))", Message: "no image may be latest",
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        namespace,
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: namespace},
		}},
	}
	return policy, binding
}
