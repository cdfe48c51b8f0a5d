// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// The specs follow Kubernetes' own end-to-end tests, with their names (test/e2e/apps/replica_set.go of Kubernetes 1.37), except for
// the one that needs an image in a private registry.

var _ = Describe("ReplicaSet", func() {
	f := newFixture()

	It("should serve a basic image on each replica with a public image", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("rs", 2)))
		pods := f.pods(set)
		Expect(pods).To(HaveLen(2))
		for _, pod := range pods {
			Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
			Expect(pod.Status.PodIP).NotTo(BeEmpty())
		}
		Expect(pods[0].Status.PodIP).NotTo(Equal(pods[1].Status.PodIP))
	})

	It("should surface a failure condition on a common issue like exceeded quota", long, func(ctx SpecContext) {
		f.createObject(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "condition-test"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
		})
		quota := &corev1.ResourceQuota{}
		Eventually(func() corev1.ResourceList { // until it has counted, it refuses everything, with another message
			_ = cluster.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "condition-test"}, quota)
			return quota.Status.Hard
		}).WithContext(ctx).Should(HaveKey(corev1.ResourcePods))

		set := f.create(ctx, newSet("rs", 3))
		failure := f.awaitCondition(ctx, set, "ReplicaFailure", metav1.ConditionTrue, "FailedCreate")
		Expect(failure.Message).To(ContainSubstring("exceeded quota: condition-test"))
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(2)))
		Expect(meta.FindStatusCondition(set.Status.Conditions, "ReplicaFailure")).To(BeNil())
	})

	It("should adopt matching pods on creation and release no longer matching pods", long, func(ctx SpecContext) {
		wanted := newSet("rs", 1)
		pod := barePod(wanted, "pod-adoption-release")
		f.createObject(ctx, pod)
		set := f.create(ctx, wanted)
		f.awaitSamePod(ctx, pod, "to be adopted", func(now *corev1.Pod) bool { return metav1.IsControlledBy(now, set) })

		f.awaitReady(ctx, set)
		now := f.pods(set)[0]
		f.changePod(ctx, now, func(pod *corev1.Pod) { pod.Labels["app"] = "released" })
		f.awaitSamePod(ctx, now, "to be released", func(now *corev1.Pod) bool { return metav1.GetControllerOf(now) == nil })
		f.awaitPods(ctx, set, "one to take its place", func(pods []*corev1.Pod) bool {
			return len(pods) == 1 && pods[0].Name != now.Name && isAvailable(pods[0])
		})
	})

	It("Replicaset should have a working scale subresource", long, func(ctx SpecContext) {
		expectWorkingScale(ctx, f, newSet("rs", 1))
	})

	It("Replace and Patch tests", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("rs", 1)))
		By("replacing it")
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(2)))
		f.awaitPods(ctx, set, "two pods", func(pods []*corev1.Pod) bool { return len(pods) == 2 })

		By("patching it")
		patched := set.DeepCopy()
		patch := []byte(`{"metadata":{"labels":{"test-rs":"patched"}},"spec":{"replicas":3}}`)
		Expect(cluster.client.Patch(ctx, patched, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		f.caughtUp(ctx)
		set = f.awaitReady(ctx, patched)
		Expect(set.Labels).To(HaveKeyWithValue("test-rs", "patched"))
		f.awaitPods(ctx, set, "three pods", func(pods []*corev1.Pod) bool { return len(pods) == 3 })
	})

	It("should list and delete a collection of ReplicaSets", long, func(ctx SpecContext) {
		expectWorkingCollection(ctx, f, newSet("rs", 1))
	})

	It("should validate Replicaset Status endpoints", long, func(ctx SpecContext) {
		expectWorkingStatus(ctx, f, newSet("rs", 1))
	})
})

// The specs below cover what CloneSets have beyond ReplicaSets, as far as it decides which pods are deleted.
var _ = Describe("CloneSet", func() {
	f := newFixture()

	It("deletes the pods that podsToDelete names first, and replaces them where the number stays", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 4)))
		pods := f.pods(set)
		toDelete := func(names ...string) option {
			return func(s *v1beta1.RollSet) { s.Spec.ScaleStrategy = &v1beta1.ScaleStrategy{PodsToDelete: names} }
		}

		By("scaling down")
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(3), toDelete(pods[2].Name)))
		f.awaitPods(ctx, set, "the named pod to go", func(now []*corev1.Pod) bool { return len(now) == 3 && f.pod(pods[2].Name) == nil })
		f.expectNoPodLost([]*corev1.Pod{pods[0], pods[1], pods[3]})

		By("leaving the number as it is")
		from := f.mark()
		set = f.change(ctx, set, toDelete(pods[0].Name, "web-unknown"))
		f.awaitPods(ctx, set, "the named pod to be replaced", func(now []*corev1.Pod) bool {
			return len(now) == 3 && count(now, isAvailable) == 3 && f.pod(pods[0].Name) == nil
		})
		f.awaitReady(ctx, set)
		f.expectAvailableAtLeast(set, from, 2)
		f.expectNoPodLost([]*corev1.Pod{pods[1], pods[3]})
	})

	It("updates the pods first that priorityStrategy prefers", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 4, maxUnavailable("1"))))
		first := f.changePod(ctx, f.pods(set)[2], func(pod *corev1.Pod) { pod.Labels["canary"] = "yes" })
		f.awaitPods(ctx, set, "the label", func([]*corev1.Pod) bool { return f.pod(first.Name).Labels["canary"] == "yes" })
		from := f.mark()
		set = f.awaitReady(ctx, f.change(ctx, set, release("2"), rolling(func(r *v1beta1.RollingUpdate) {
			r.PriorityStrategy = &v1beta1.UpdatePriorityStrategy{WeightPriority: []v1beta1.UpdatePriorityWeightTerm{{
				Weight: 50, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}},
			}}}
		})))
		Expect(f.goings(set, from)[0]).To(Equal(first.Name))
	})

	It("spreads the pods that scatterStrategy names over an update", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 6, maxUnavailable("1"))))
		marked := map[string]bool{}
		for _, pod := range f.pods(set)[:3] {
			f.changePod(ctx, pod, func(pod *corev1.Pod) { pod.Labels["noise"] = "yes" })
			marked[pod.Name] = true
		}
		f.awaitPods(ctx, set, "the labels", func(pods []*corev1.Pod) bool {
			return count(pods, func(pod *corev1.Pod) bool { return pod.Labels["noise"] == "yes" }) == 3
		})
		from := f.mark()
		set = f.awaitReady(ctx, f.change(ctx, set, release("2"), rolling(func(r *v1beta1.RollingUpdate) {
			r.ScatterStrategy = []v1beta1.UpdateScatterTerm{{Key: "noise", Value: "yes"}}
		})))
		goings := f.goings(set, from)
		Expect(goings).To(HaveLen(6))
		for i := range 5 {
			Expect(marked[goings[i]] && marked[goings[i+1]]).To(BeFalse(), "two in a row in %v, of %v", goings, marked)
		}
	})
})
