// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// still is how long nothing may change before a spec assumes that nothing will.
const still = 2 * time.Second

var _ = Describe("A rolling update", func() {
	f := newFixture()

	It("moves all pods within maxUnavailable", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 10, maxUnavailable("30%"))))
		before, from := set.Status.UpdateRevision, f.mark()

		set = f.awaitReady(ctx, f.change(ctx, set, release("2")))
		Expect(isUpdated(set)).To(Succeed())
		Expect(set.Status.UpdateRevision).NotTo(Equal(before))
		f.expectLiveAtMost(set, from, 10)
		f.expectAvailableAtLeast(set, from, 7)
		Expect(f.deleted(set, from)).To(Equal(10), "pods deleted")
		Expect(f.created(set, from)).To(Equal(10), "pods created")
		Expect(f.revisions(set)).To(HaveLen(2))

		By("going back to the first template, which uses its revision again")
		set = f.awaitReady(ctx, f.change(ctx, set, template(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Env = nil })))
		Expect(set.Status.UpdateRevision).To(Equal(before))
		Expect(f.revisions(set)).To(HaveLen(2))
	})

	It("creates new pods first with maxSurge, and then has never fewer than wanted", long, core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 6, maxUnavailable("0"), maxSurge("50%"))))
		from := f.mark()

		set = f.awaitReady(ctx, f.change(ctx, set, release("2")))
		f.awaitPods(ctx, set, "six pods", func(pods []*corev1.Pod) bool { return len(pods) == 6 })
		Expect(isUpdated(f.set(set))).To(Succeed())
		f.expectLiveAtMost(set, from, 9)
		f.expectAvailableAtLeast(set, from, 6)
		Expect(f.created(set, from)).To(Equal(6), "pods created")
	})

	It("stops at the partition, goes on when it is lowered, and goes back when it is raised", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 5, maxUnavailable("1"), partition("3"))))
		current, from := set.Status.UpdateRevision, f.mark()
		isMix := func(old, updated int) func([]*corev1.Pod) bool {
			return func(pods []*corev1.Pod) bool {
				update := f.set(set).Status.UpdateRevision
				return len(pods) == old+updated && count(pods, at(current)) == old && count(pods, at(update)) == updated
			}
		}

		set = f.change(ctx, set, release("2"))
		f.awaitCondition(ctx, set, "Progressing", metav1.ConditionTrue, "PartitionReached")
		set = f.awaitReady(ctx, set)
		Expect(set.Status.UpdateRevision).NotTo(Equal(current))
		Expect(set.Status).To(And(
			HaveField("UpdatedReplicas", int32(2)), HaveField("CurrentReplicas", int32(3)), HaveField("ExpectedUpdatedReplicas", int32(2)),
			HaveField("CurrentRevision", current),
		))
		f.awaitPods(ctx, set, "three old pods and two new ones", isMix(3, 2))
		f.expectAvailableAtLeast(set, from, 4)

		By("losing one pod of each revision: each comes back at its own")
		for _, revision := range []string{current, set.Status.UpdateRevision} {
			for _, pod := range f.pods(set) {
				if at(revision)(pod) {
					f.delete(ctx, pod)
					break
				}
			}
			f.awaitPods(ctx, set, "the mix again", isMix(3, 2))
			f.awaitPods(ctx, set, "all to be available", func(pods []*corev1.Pod) bool { return count(pods, isAvailable) == 5 })
		}

		By("lowering the partition")
		from = f.mark()
		set = f.change(ctx, set, partition("1"))
		f.awaitPods(ctx, set, "one old pod", isMix(1, 4))
		set = f.awaitReady(ctx, set)
		f.expectAvailableAtLeast(set, from, 4)

		By("raising the partition")
		from = f.mark()
		set = f.change(ctx, set, partition("4"))
		f.awaitPods(ctx, set, "four old pods", isMix(4, 1))
		set = f.awaitReady(ctx, set)
		f.expectAvailableAtLeast(set, from, 4)
		f.expectLiveAtMost(set, from, 5)

		By("taking it away")
		set = f.awaitReady(ctx, f.change(ctx, set, partition("0")))
		Expect(isUpdated(set)).To(Succeed())
	})

	It("does nothing while it is paused, but scales", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 4)))
		current, pods := set.Status.UpdateRevision, f.pods(set)

		set = f.change(ctx, set, paused(), release("2"))
		f.awaitCondition(ctx, set, "Progressing", metav1.ConditionUnknown, "Paused")
		f.quiet(ctx, still)
		f.expectNoPodLost(pods)

		By("scaling up: the new pods are like the old ones")
		set = f.change(ctx, set, scaledTo(6))
		f.awaitPods(ctx, set, "six old pods", func(pods []*corev1.Pod) bool {
			return len(pods) == 6 && count(pods, at(current)) == 6 && count(pods, isAvailable) == 6
		})
		f.expectNoPodLost(pods)

		By("resuming")
		from := f.mark()
		set = f.awaitReady(ctx, f.change(ctx, set, resumed()))
		Expect(isUpdated(set)).To(Succeed())
		f.expectAvailableAtLeast(set, from, 4)
	})

	It("leaves the mix of revisions as it is when it is paused half-way", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 6, maxUnavailable("2"), gated()))
		open := func(pods []*corev1.Pod) {
			for _, pod := range pods {
				f.setGate(ctx, pod, corev1.ConditionTrue)
			}
		}
		open(f.awaitPods(ctx, set, "six pods", func(pods []*corev1.Pod) bool { return len(pods) == 6 }))
		set = f.awaitReady(ctx, set)
		current := set.Status.UpdateRevision
		isNew := func(pod *corev1.Pod) bool { return isLive(pod) && !at(current)(pod) }

		set = f.change(ctx, set, release("2"))
		f.awaitPods(ctx, set, "two new pods", func(pods []*corev1.Pod) bool { return len(pods) == 6 && count(pods, isNew) == 2 })
		set = f.change(ctx, set, paused())
		f.awaitCondition(ctx, set, "Progressing", metav1.ConditionUnknown, "Paused")
		open(f.pods(set))
		f.awaitPods(ctx, set, "all to be available", func(pods []*corev1.Pod) bool { return count(pods, isAvailable) == 6 })
		f.quiet(ctx, still)
		Expect(count(f.pods(set), isNew)).To(Equal(2), "updated pods")
	})

	It("follows several edits in quick succession to the last one", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 6, maxUnavailable("2"))))
		from := f.mark()
		for _, version := range []string{"2", "3", "4", "5"} {
			set = f.change(ctx, set, release(version))
		}
		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		f.expectAvailableAtLeast(set, from, 4)
		f.expectLiveAtMost(set, from, 6)
	})

	It("counts a pod as available only after minReadySeconds", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 2, func(s *v1beta1.RollSet) { s.Spec.MinReadySeconds = 2 }))
		f.awaitReady(ctx, set)
		for _, pod := range f.pods(set) {
			Expect(time.Since(readySince(pod))).To(BeNumerically(">=", 2*time.Second), "pod %s", pod.Name)
		}
	})

	It("keeps the revisions that the history allows, and those in use", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 1, func(s *v1beta1.RollSet) { s.Spec.RevisionHistoryLimit = new(int32(1)) })))
		for _, version := range []string{"2", "3", "4"} {
			set = f.awaitReady(ctx, f.change(ctx, set, release(version)))
		}
		f.await(ctx, "one revision beside that in use", func() error {
			if n := len(f.revisions(set)); n != 2 {
				return fmt.Errorf("there are %d revisions", n)
			}
			return nil
		})
	})
})
