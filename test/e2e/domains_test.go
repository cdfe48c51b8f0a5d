// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// rack is a label that specs give to pods, so that they decide which pods are in one failure domain.
const rack = "example.com/rack"

// domains makes the values of a label failure domains.
func domains(key string, soakSeconds int32) option {
	return rolling(func(r *v1beta1.RollingUpdate) {
		r.Domains = &v1beta1.FailureDomains{LabelKey: key, SoakSeconds: soakSeconds}
	})
}

var _ = Describe("Failure domains", func() {
	f := newFixture()

	inRack := func(name string) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool { return pod.Labels[rack] == name }
	}

	// expectOneAtATime fails the spec if at any moment since the mark pods of two racks were unavailable.
	expectOneAtATime := func(set *v1beta1.RollSet, from mark) {
		GinkgoHelper()
		f.replay(set, from, func(moment string, pods []*corev1.Pod) {
			lacking := map[string]bool{}
			for _, pod := range pods {
				if !isAvailable(pod) {
					lacking[pod.Labels[rack]] = true
				}
			}
			if len(lacking) > 1 {
				Fail(fmt.Sprintf("pods of %d racks are unavailable at %s:\n%s", len(lacking), moment, describe(pods)))
			}
		})
	}

	It("are updated one after the other, in place, and wait for a pod of another domain", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 6, ordinal(), parallel(), inPlace(), gated(), maxUnavailable("2"), domains(rack, 15)))
		for i, pod := range f.awaitPods(ctx, set, "six pods", func(pods []*corev1.Pod) bool { return len(pods) == 6 }) {
			f.changePod(ctx, pod, func(p *corev1.Pod) { p.Labels[rack] = string(rune('a' + i%3)) })
			f.setGate(ctx, pod, corev1.ConditionTrue)
		}
		set = f.awaitReady(ctx, set)
		from := f.mark()

		set = f.change(ctx, set, withImage(cluster.nextImage()))
		f.awaitProgress(ctx, set, ContainSubstring("rack b waits for soakSeconds to pass until"))
		updated := f.podsWith(inRack("a"))
		f.expectAtRevision(ctx, f.set(set), 2)

		By("making a pod unavailable in the domain that is done")
		f.setGate(ctx, updated[0], corev1.ConditionFalse)
		f.awaitProgress(ctx, set, ContainSubstring("waiting for "+updated[0].Name))
		f.quiet(ctx, 15*time.Second+still)
		f.expectAtRevision(ctx, f.set(set), 2)

		By("making it available again, with a shorter soak")
		set = f.change(ctx, set, domains(rack, 2))
		f.setGate(ctx, updated[0], corev1.ConditionTrue)
		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		expectOneAtATime(set, from)
		Expect(f.created(set, from)).To(Equal(0), "pods created")
	})

	It("are zones, whose label the API server copies from nodes", core, func(ctx SpecContext) {
		nodes := &corev1.NodeList{}
		Expect(cluster.client.List(ctx, nodes)).To(Succeed())
		zones := map[string]string{}
		for i := range nodes.Items {
			zones[nodes.Items[i].Name] = nodes.Items[i].Labels[corev1.LabelTopologyZone]
		}
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 6, maxUnavailable("2"), domains(corev1.LabelTopologyZone, 0))))
		pods, from := f.pods(set), f.mark()

		set = f.change(ctx, set, release("2"))
		if pods[0].Labels[corev1.LabelTopologyZone] == "" { // Kubernetes 1.34
			f.awaitProgress(ctx, set, ContainSubstring("no pod has the label topology.kubernetes.io/zone, so each is a domain of its own"))
			zones = map[string]string{}
		}
		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		f.expectAvailableAtLeast(set, from, 4)
		for _, pod := range f.pods(set) {
			Expect(pod.Labels[corev1.LabelTopologyZone]).To(Equal(zones[pod.Spec.NodeName]), "zone of "+pod.Name)
		}
	})

	It("are disturbed one at a time, also while a pod is missing, has no node, or comes to another one", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 6, ordinal(), parallel(), maxUnavailable("2"), domains(corev1.LabelTopologyZone, 0))))
		from := f.mark()
		set = f.awaitReady(ctx, f.change(ctx, set, release("2")))
		Expect(isUpdated(set)).To(Succeed())

		homes := map[string]string{} // where each pod was when it was available last
		f.replay(set, from, func(moment string, pods []*corev1.Pod) {
			available := map[string]bool{}
			for _, pod := range pods {
				if isAvailable(pod) {
					available[pod.Name], homes[pod.Name] = true, pod.Labels[corev1.LabelTopologyZone]
				}
			}
			lacking := map[string]bool{}
			for name, home := range homes {
				if !available[name] {
					lacking[home] = true
				}
			}
			if len(lacking) > 1 {
				Fail(fmt.Sprintf("pods of %d zones are unavailable at %s:\n%s", len(lacking), moment, describe(pods)))
			}
		})
		Expect(homes).To(HaveLen(6), "pods that the events show")
	})

	It("are replaced on demand one after the other too", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 4, ordinal(), parallel(), gated(), maxUnavailable("4"), domains(rack, 0)))
		for i, pod := range f.awaitPods(ctx, set, "four pods", func(pods []*corev1.Pod) bool { return len(pods) == 4 }) {
			f.changePod(ctx, pod, func(p *corev1.Pod) { p.Labels[rack] = string(rune('a' + i%2)) })
			f.setGate(ctx, pod, corev1.ConditionTrue)
		}
		set = f.awaitReady(ctx, set)
		from := f.mark()
		for _, pod := range f.pods(set) {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, v1beta1.SpecifiedDeleteLabel)
			Expect(cluster.client.Patch(ctx, pod.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
		}
		f.await(ctx, "the pods of a rack to be replaced", func() error {
			if n := f.deleted(set, from); n == 0 {
				return fmt.Errorf("%d pods were deleted", n)
			}
			return nil
		})
		f.quiet(ctx, still)
		Expect(f.podsWith(inRack("b"))).To(HaveLen(2), "pods of the rack that waits")
	})
})
