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

// hold is a finalizer that keeps a pod until the spec removes it.
const hold = "e2e.rollset.dev/hold"

var _ = Describe("StatefulSet: updates", func() {
	f := newFixture()

	DescribeTable("should perform rolling updates and roll backs of template modifications", func(ctx SpecContext, options ...option) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, append(options, ordinal())...)))
		first, claims := set.Status.CurrentRevision, uids(f.claims())

		By("breaking a pod, and updating: the broken one goes first, then the highest")
		f.breakPod(ctx, set, "ss-1")
		from := f.mark()
		set = f.change(ctx, set, release("2"))
		set = f.awaitStatus(ctx, set, "all pods to be updated", func(s *v1beta1.RollSetStatus) bool {
			return s.UpdatedAvailableReplicas == 3 && s.CurrentRevision == s.UpdateRevision
		})
		Expect(set.Status.UpdateRevision).NotTo(Equal(first))
		Expect(f.comings(set, from)).To(Equal(numbered(set, 1, 2, 0)))

		By("rolling back: the highest goes first, and the first revision is found again")
		from = f.mark()
		set = f.change(ctx, set, template(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Env = nil }))
		set = f.awaitStatus(ctx, set, "all pods to be rolled back", func(s *v1beta1.RollSetStatus) bool {
			return s.UpdatedAvailableReplicas == 3 && s.CurrentRevision == s.UpdateRevision && s.UpdateRevision == first
		})
		Expect(f.comings(set, from)).To(Equal(numbered(set, 2, 1, 0)))
		f.expectAvailableAtLeast(set, from, 2)
		Expect(uids(f.claims())).To(Equal(claims), "an update keeps the claims")
	},
		Entry("should perform rolling updates and roll backs of template modifications", long),
		Entry("should perform rolling updates and roll backs of template modifications with PVCs", core, claiming("data")),
	)

	DescribeTable("keeps as many pods available as wanted beside surge, which goes again with its claims", func(ctx SpecContext, options ...option) {
		options = append(options, ordinal(), claiming("data"), maxUnavailable("0"), maxSurge("1"))
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, options...)))
		claims, from := uids(f.claims()), f.mark()

		set = f.awaitReady(ctx, f.change(ctx, set, release("2")))
		f.awaitNames(ctx, set, numbered(set, 0, 1, 2)...)
		Expect(f.comings(set, from)).To(Equal(numbered(set, 3, 2, 1, 0)))
		Expect(f.goings(set, from)).To(Equal(numbered(set, 2, 1, 0, 3)))
		f.expectLiveAtMost(set, from, 4)
		f.expectAvailableAtLeast(set, from, 3)
		f.awaitClaimNames(ctx, "data-ss-0", "data-ss-1", "data-ss-2")
		Expect(uids(f.claims())).To(Equal(claims), "the members keep their claims")
	},
		Entry("in parallel", parallel()),
		Entry("in order", long),
	)

	It("should perform canary updates and phased rolling updates of template modifications", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), partition("3"))))
		old, pods := set.Status.CurrentRevision, f.pods(set)

		By("updating with a partition that keeps all pods")
		set = f.change(ctx, set, release("2"))
		set = f.awaitStatus(ctx, set, "the new revision", func(s *v1beta1.RollSetStatus) bool { return s.UpdateRevision != old })
		f.quiet(ctx, 500*time.Millisecond)
		f.expectNoPodLost(pods)
		fresh := set.Status.UpdateRevision

		By("lowering the partition to 2")
		set = f.change(ctx, set, partition("2"))
		f.awaitMix(ctx, set, old, old, fresh)
		f.expectNoPodLost(pods[:2])

		By("deleting all pods: each comes back at its own revision")
		for _, pod := range f.pods(set) {
			f.delete(ctx, pod)
		}
		f.awaitPods(ctx, set, "all pods to be new", func(now []*corev1.Pod) bool {
			return len(now) == 3 && count(now, isAvailable) == 3 && now[0].UID != pods[0].UID && now[1].UID != pods[1].UID
		})
		f.awaitMix(ctx, set, old, old, fresh)

		By("lowering the partition step by step")
		set = f.change(ctx, set, partition("1"))
		f.awaitMix(ctx, set, old, fresh, fresh)
		set = f.change(ctx, set, partition("0"))
		f.awaitMix(ctx, set, fresh, fresh, fresh)
		f.awaitStatus(ctx, set, "the end of the rollout", func(s *v1beta1.RollSetStatus) bool { return s.CurrentRevision == fresh })
	})

	DescribeTable("should perform canary updates and phased rolling updates of template modifications for partiton1 and delete pod-0", func(ctx SpecContext, end corev1.PodPhase) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), partition("1"))))
		old := set.Status.CurrentRevision
		set = f.change(ctx, set, release("2"))
		set = f.awaitStatus(ctx, set, "the new revision", func(s *v1beta1.RollSetStatus) bool { return s.UpdateRevision != old })
		fresh := set.Status.UpdateRevision
		f.awaitMix(ctx, set, old, fresh, fresh)

		pod := f.changePod(ctx, f.pod("ss-0"), func(pod *corev1.Pod) { pod.Finalizers = append(pod.Finalizers, hold) })
		f.delete(ctx, pod)
		f.awaitPods(ctx, set, "ss-0 to end", func([]*corev1.Pod) bool {
			phase := f.pod("ss-0").Status.Phase
			return phase == corev1.PodSucceeded || phase == corev1.PodFailed
		})
		changeStatus(ctx, pod.DeepCopy(), func(ended *corev1.Pod) { ended.Status.Phase = end })
		f.quiet(ctx, 500*time.Millisecond)
		Expect(f.pod("ss-0").UID).To(Equal(pod.UID), "the name is taken until the old pod is gone")

		f.changePod(ctx, pod, func(pod *corev1.Pod) { pod.Finalizers = nil })
		f.awaitMix(ctx, set, old, fresh, fresh)
		Expect(f.pod("ss-0").UID).NotTo(Equal(pod.UID))
	},
		Entry("without failing container", corev1.PodSucceeded),
		Entry("with failing container", long, corev1.PodFailed),
	)

	DescribeTable("should perform rolling updates with maxUnavailable", long, func(ctx SpecContext, options ...option) {
		set := f.create(ctx, newSet("ss", 5, append(options, ordinal(), gated(), maxUnavailable("2"))...))
		for _, name := range numbered(set, 0, 1, 2, 3, 4) {
			f.openGate(ctx, set, name)
		}
		set = f.awaitReady(ctx, set)
		from := f.mark()
		set = f.change(ctx, set, release("2"))
		// No new pod becomes ready before its gate is open.
		f.awaitPods(ctx, set, "two pods to be out of service at the same time", func(pods []*corev1.Pod) bool { return count(pods, isAvailable) == 3 })
		set = f.awaitStatus(ctx, set, "all pods to be updated", func(s *v1beta1.RollSetStatus) bool {
			for _, pod := range f.pods(set) {
				if isLive(pod) && !isReady(pod) {
					Expect(client.IgnoreNotFound(turn(ctx, pod, gate, corev1.ConditionTrue))).To(Succeed())
				}
			}
			return s.UpdatedAvailableReplicas == 5 && s.CurrentRevision == s.UpdateRevision
		})
		f.expectAvailableAtLeast(set, from, 3)
		Expect(f.goings(set, from)[:2]).To(ConsistOf(numbered(set, 4, 3)))
	},
		Entry("OrderedReady"),
		Entry("Parallel", parallel()),
	)

	It("should implement legacy replacement when the update strategy is OnDelete", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), strategy(v1beta1.OnDeleteStrategy))))
		old, pods := set.Status.CurrentRevision, f.pods(set)
		set = f.change(ctx, set, release("2"))
		set = f.awaitStatus(ctx, set, "the new revision", func(s *v1beta1.RollSetStatus) bool { return s.UpdateRevision != old })
		fresh := set.Status.UpdateRevision
		f.quiet(ctx, 500*time.Millisecond)
		f.expectNoPodLost(pods)

		f.delete(ctx, pods[1])
		f.awaitMix(ctx, set, old, fresh, old)
		f.delete(ctx, pods[0])
		f.delete(ctx, pods[2])
		f.awaitMix(ctx, set, fresh, fresh, fresh)
		f.awaitStatus(ctx, set, "the end of the rollout", func(s *v1beta1.RollSetStatus) bool { return s.CurrentRevision == fresh })
	})

	It("MinReadySeconds should be honored when enabled", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("ss", 2, ordinal(), parallel(), minReady(3)))
		f.awaitStatus(ctx, set, "two ready pods, none available", func(s *v1beta1.RollSetStatus) bool {
			return s.ReadyReplicas == 2 && s.AvailableReplicas == 0
		})
		f.awaitStatus(ctx, set, "two available pods", func(s *v1beta1.RollSetStatus) bool { return s.AvailableReplicas == 2 })
		for _, pod := range f.pods(set) {
			Expect(time.Since(readySince(pod))).To(BeNumerically(">=", 3*time.Second))
		}
		f.awaitReady(ctx, set)
	})

	It("AvailableReplicas should get updated accordingly when MinReadySeconds is enabled", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 2, ordinal(), parallel(), minReady(1))))
		pods := f.pods(set)
		available := func(n int32) func(*v1beta1.RollSetStatus) bool {
			return func(s *v1beta1.RollSetStatus) bool { return s.AvailableReplicas == n && s.ReadyReplicas == 2 }
		}
		set = f.change(ctx, set, minReady(3600))
		f.awaitStatus(ctx, set, "no pod to be available", available(0))
		set = f.change(ctx, set, minReady(0))
		f.awaitStatus(ctx, set, "two available pods", available(2))
		f.expectNoPodLost(pods)
	})
})

var _ = Describe("StatefulSet: Recreate", func() {
	f := newFixture()

	It("should recreate all pods: old ones are gone before any new one comes", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), strategy(v1beta1.RecreateStrategy))))
		old := set.Status.CurrentRevision
		from := f.mark()
		set = f.change(ctx, set, release("2"))
		set = f.awaitStatus(ctx, set, "all pods to be updated", func(s *v1beta1.RollSetStatus) bool {
			return s.UpdatedAvailableReplicas == 3 && s.CurrentRevision == s.UpdateRevision && s.UpdateRevision != old
		})
		f.expectRevisionsApart(set, from)
		Expect(f.comings(set, from)).To(Equal(numbered(set, 0, 1, 2)))
	})

	DescribeTable("should replace pods that cannot pull their image", func(ctx SpecContext, stuck int, options ...option) {
		options = append(options, ordinal(), strategy(v1beta1.RecreateStrategy), withImage(cluster.unavailableImage()))
		set := f.create(ctx, newSet("ss", 5, options...))
		f.awaitPods(ctx, set, "pods that are stuck", func(pods []*corev1.Pod) bool { return len(pods) == stuck && count(pods, isStarted) == stuck })
		from := f.mark()
		set = f.awaitReady(ctx, f.change(ctx, set, withImage(cluster.image())))
		f.awaitNames(ctx, set, numbered(set, 0, 1, 2, 3, 4)...)
		f.expectRevisionsApart(set, from)
		Expect(f.goings(set, from)).To(HaveLen(stuck))
	},
		Entry("ImagePullBackOff, OrderedReady: there is only the first", long, 1),
		Entry("ImagePullBackOff, Parallel: all go together", 5, parallel()),
	)
})

// awaitMix waits until the set's pods, by name, are available at these revisions, and the status shows it.
func (f *fixture) awaitMix(ctx SpecContext, set *v1beta1.RollSet, revisions ...string) {
	GinkgoHelper()
	f.awaitPods(ctx, set, fmt.Sprintf("pods at %v", revisions), func(pods []*corev1.Pod) bool {
		if len(pods) != len(revisions) {
			return false
		}
		for i, pod := range pods {
			if !isAvailable(pod) || !at(revisions[i])(pod) {
				return false
			}
		}
		return true
	})
	f.awaitStatus(ctx, set, "a status that says so", func(s *v1beta1.RollSetStatus) bool {
		var updated, current int32
		for _, r := range revisions {
			if r == s.UpdateRevision {
				updated++
			}
			if r == s.CurrentRevision {
				current++
			}
		}
		return s.UpdatedReplicas == updated && s.CurrentReplicas == current && s.AvailableReplicas == int32(len(revisions))
	})
}

// expectRevisionsApart fails the spec if at any moment since the mark pods of two revisions existed, including terminating
// ones.
func (f *fixture) expectRevisionsApart(set *v1beta1.RollSet, from mark) {
	GinkgoHelper()
	f.replay(set, from, func(moment string, pods []*corev1.Pod) {
		revisions := map[string]bool{}
		for _, pod := range pods {
			revisions[pod.Labels[v1beta1.RevisionLabel]] = true
		}
		if len(revisions) > 1 {
			Fail(fmt.Sprintf("pods of two revisions at %s:\n%s", moment, describe(pods)))
		}
	})
}

// isStarted reports whether a kubelet has seen a pod.
func isStarted(pod *corev1.Pod) bool { return pod.Status.StartTime != nil }
