// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("StatefulSet: scaling", func() {
	f := newFixture()

	It("Scaling should happen in predictable order and halt if any stateful pod is unhealthy", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("ss", 3, ordinal(), gated()))

		By("halting on the way up until the pod before is available")
		for i := range 3 {
			f.awaitNames(ctx, set, numbered(set, []int{0, 1, 2}[:i+1]...)...)
			f.awaitMessage(ctx, set, "Progressing", "waiting for "+numbered(set, i)[0])
			f.quiet(ctx, 500*time.Millisecond)
			Expect(f.pods(set)).To(HaveLen(i + 1))
			f.openGate(ctx, set, numbered(set, i)[0])
		}
		set = f.awaitReady(ctx, set)
		Expect(f.comings(set, 0)).To(Equal(numbered(set, 0, 1, 2)))

		By("halting on the way down while a pod below is unavailable")
		f.setGate(ctx, f.pod("ss-0"), corev1.ConditionFalse)
		f.awaitCondition(ctx, set, "Ready", metav1.ConditionFalse, "") // so the manager has seen it
		down := f.mark()
		set = f.change(ctx, set, scaledTo(1))
		f.awaitCondition(ctx, set, "Progressing", metav1.ConditionTrue, v1beta1.ReasonScaling)
		f.quiet(ctx, 500*time.Millisecond)
		Expect(f.goings(set, down)).To(BeEmpty())
		f.openGate(ctx, set, "ss-0")
		f.awaitNames(ctx, set, numbered(set, 0)...)
		Expect(f.goings(set, down)).To(Equal(numbered(set, 2, 1)), "the highest first")
		f.expectOneGoingAtATime(set, down)

		By("not halting because the pod that is to go is itself unavailable")
		f.setGate(ctx, f.pod("ss-0"), corev1.ConditionFalse)
		set = f.change(ctx, set, scaledTo(0))
		f.awaitNames(ctx, set)
		f.awaitReady(ctx, set)
	})

	It("Burst scaling should run to completion even with unhealthy pods", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("ss", 3, ordinal(), parallel(), gated()))
		f.awaitNames(ctx, set, numbered(set, 0, 1, 2)...)
		f.openGate(ctx, set, "ss-1")
		set = f.change(ctx, set, scaledTo(5))
		f.awaitNames(ctx, set, numbered(set, 0, 1, 2, 3, 4)...)
		set = f.change(ctx, set, scaledTo(2))
		f.awaitNames(ctx, set, numbered(set, 0, 1)...)
		set = f.change(ctx, set, scaledTo(0))
		f.awaitNames(ctx, set)
		f.awaitReady(ctx, set)
	})

	It("fills the gaps that reserved ordinals leave, and moves off those that become reserved", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), parallel(), reserving("1", "3-5"))))
		pods := f.awaitNames(ctx, set, numbered(set, 0, 2, 6)...)

		from := f.mark()
		set = f.change(ctx, set, reserving("2-5"))
		f.awaitNames(ctx, set, numbered(set, 0, 1, 6)...)
		f.awaitReady(ctx, set)
		f.expectLiveAtMost(set, from, 3)
		f.expectAvailableAtLeast(set, from, 2)
		f.expectNoPodLost([]*corev1.Pod{pods[0], pods[2]})
	})

	It("leaves alone the pods whose names only look like its own", func(ctx SpecContext) {
		set := newSet("ss", 2, ordinal(), parallel())
		others := []*corev1.Pod{
			barePod(set, "ss-007"), barePod(set, "ss-99999999999"), barePod(set, "ss-x"), barePod(set, "other-0"),
		}
		for _, pod := range others {
			f.createObject(ctx, pod)
		}
		set = f.awaitReady(ctx, f.create(ctx, set))
		f.awaitNames(ctx, set, numbered(set, 0, 1)...)
		f.expectNoPodLost(others)
	})

	It("waits only with the ordinal whose name a foreign pod has", long, func(ctx SpecContext) {
		set := newSet("ss", 3, ordinal(), parallel())
		foreign := barePod(set, "ss-1")
		foreign.Labels = map[string]string{"app": "other"}
		f.createObject(ctx, foreign)
		set = f.create(ctx, set)
		f.awaitNames(ctx, set, numbered(set, 0, 2)...)
		failure := f.awaitCondition(ctx, set, "ReplicaFailure", metav1.ConditionTrue, "NameConflict")
		Expect(failure.Message).To(ContainSubstring("ss-1"))
		f.expectNoPodLost([]*corev1.Pod{foreign})

		f.delete(ctx, foreign)
		f.awaitNames(ctx, set, numbered(set, 0, 1, 2)...)
		f.awaitReady(ctx, set)
	})

	It("replaces the pod that a user names, under the same name", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), parallel())))
		pods := f.pods(set)
		from := f.mark()
		f.changePod(ctx, pods[1], func(pod *corev1.Pod) { pod.Labels[v1beta1.SpecifiedDeleteLabel] = "true" })
		f.awaitPods(ctx, set, "another ss-1", func(now []*corev1.Pod) bool {
			return len(now) == 3 && count(now, isAvailable) == 3 && f.pod("ss-1").UID != pods[1].UID
		})
		f.awaitReady(ctx, set)
		f.expectAvailableAtLeast(set, from, 2)
		f.expectNoPodLost([]*corev1.Pod{pods[0], pods[2]})
	})

	It("keeps names near the limit of 63 characters", func(ctx SpecContext) {
		longest := strings.Repeat("n", 52)
		set := f.awaitReady(ctx, f.create(ctx, newSet(longest, 1, ordinal(), claiming("data"), startingAt(1_000_000_000))))
		pod := f.awaitNames(ctx, set, longest+"-1000000000")[0]
		Expect(pod.Name).To(HaveLen(63))
		Expect(pod.Spec.Hostname).To(Equal(pod.Name))
		f.awaitClaimNames(ctx, "data-"+pod.Name)
	})
})

// expectOneGoingAtATime fails the spec if at any moment since the mark two pods were terminating.
func (f *fixture) expectOneGoingAtATime(set *v1beta1.RollSet, from mark) {
	GinkgoHelper()
	f.replay(set, from, func(moment string, pods []*corev1.Pod) {
		Expect(len(pods)-count(pods, isLive)).To(BeNumerically("<=", 1), "terminating at %s:\n%s", moment, describe(pods))
	})
}
