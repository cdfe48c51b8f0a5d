// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// The documentation of StatefulSet calls this "Forced rollback": a pod that cannot start blocks the template that would
// repair it until a user deletes the pod. In a RollSet no user needs to, whatever the pods above and below are doing.
var _ = Describe("A stuck pod of an OrderedReady set", func() {
	f := newFixture()

	// isRunning waits until the set is complete, and checks that pods were created in order after the mark.
	isRunning := func(ctx SpecContext, set *v1beta1.RollSet) *v1beta1.RollSet {
		GinkgoHelper()
		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		return set
	}

	It("is replaced when its cpu request was larger than any node and is corrected", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("ss", 3, ordinal(), requesting("100000")))
		f.awaitMessage(ctx, set, "Progressing", "waiting for ss-0: Unschedulable", "Insufficient cpu")
		Expect(names(f.pods(set))).To(Equal(numbered(set, 0)))

		set = isRunning(ctx, f.change(ctx, set, requesting("10m")))
		f.awaitNames(ctx, set, numbered(set, 0, 1, 2)...)
		Expect(f.created(set, 0)).To(Equal(4), "one pod too much was created: the stuck one")
	})

	DescribeTable("is replaced at any ordinal", core, func(ctx SpecContext, broken string) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal())))
		from := f.mark()

		By("breaking one more pod by an update, and another by hand")
		set = f.change(ctx, set, withImage(cluster.unavailableImage()), partition("2"))
		f.awaitPods(ctx, set, "ss-2 to be stuck", func([]*corev1.Pod) bool {
			pod := f.pod("ss-2")
			return pod != nil && isLive(pod) && pod.Spec.Containers[0].Image == cluster.unavailableImage() && isStarted(pod)
		})
		f.breakPod(ctx, set, broken)

		set = isRunning(ctx, f.change(ctx, set, withImage(cluster.image()), release("3"), partition("0")))
		f.expectAvailableAtLeast(set, from, 1)
	},
		Entry("the lowest", "ss-0"),
		Entry("one in the middle", long, "ss-1"),
	)

	It("is replaced after several edits in quick succession", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal())))
		from := f.mark()
		for _, cpu := range []string{"100000", "100001", "100002"} {
			set = f.change(ctx, set, requesting(cpu))
		}
		f.awaitMessage(ctx, set, "Progressing", "waiting for ss-2: Unschedulable")
		for _, version := range []string{"2", "3", "4"} {
			set = f.change(ctx, set, requesting("10m"), release(version))
		}
		isRunning(ctx, set)
		f.expectAvailableAtLeast(set, from, 2)
	})

	It("is replaced when the template goes back to the one before", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal())))
		pods := f.pods(set)
		set = f.change(ctx, set, withImage(cluster.unavailableImage()))
		f.awaitMessage(ctx, set, "Progressing", "waiting for ss-2")
		isRunning(ctx, f.change(ctx, set, withImage(cluster.image())))
		f.expectNoPodLost(pods[:2])
	})

	It("stays where the partition wants it, and the condition says so", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal())))
		old := set.Status.CurrentRevision
		broken := f.pod("ss-0")
		f.breakPod(ctx, set, "ss-0")
		set = f.change(ctx, set, release("2"), partition("1"))
		f.awaitMessage(ctx, set, "Progressing", "waiting for ss-0", "the partition keeps it at revision "+old)
		f.quiet(ctx, 500*time.Millisecond)
		f.expectNoPodLost([]*corev1.Pod{broken})
		Expect(f.pod("ss-0").Labels).To(HaveKeyWithValue(v1beta1.RevisionLabel, old))

		By("lowering the partition")
		isRunning(ctx, f.change(ctx, set, partition("0")))
	})
})

// breakPod gives a pod an image that cannot be pulled, and waits until it is no longer ready.
func (f *fixture) breakPod(ctx context.Context, set *v1beta1.RollSet, name string) {
	GinkgoHelper()
	f.changePod(ctx, f.pod(name), func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = cluster.unavailableImage() })
	f.awaitPods(ctx, set, name+" to break", func([]*corev1.Pod) bool { return f.pod(name) != nil && !isReady(f.pod(name)) })
}
