// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("Scaling", func() {
	f := newFixture()

	It("creates as many pods as wanted, and says so", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 5)))

		pods := f.pods(set)
		Expect(pods).To(HaveLen(5))
		f.expectLiveAtMost(set, 0, 5)
		for _, pod := range pods {
			id := pod.Labels[v1beta1.InstanceIDLabel]
			Expect(id).To(HaveLen(5), "the identity of %s", pod.Name)
			Expect(pod.Name).To(Equal("web-" + id))
			Expect(pod.Labels).To(HaveKeyWithValue(v1beta1.RevisionLabel, set.Status.UpdateRevision))
		}
		Expect(f.revisions(set)).To(HaveLen(1))
		Expect(set.Status).To(And(
			HaveField("Replicas", int32(5)), HaveField("ReadyReplicas", int32(5)), HaveField("AvailableReplicas", int32(5)),
			HaveField("UpdatedReplicas", int32(5)), HaveField("CurrentReplicas", int32(5)),
			HaveField("LabelSelector", "app=web"), HaveField("CurrentRevision", set.Status.UpdateRevision),
		))
		Expect(set.Spec).To(Equal(f.set(set).Spec), "the controller never writes a spec")
	})

	It("follows the number of replicas up and down", long, core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3)))
		first := f.pods(set)

		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(8)))
		Expect(f.pods(set)).To(HaveLen(8))
		f.expectNoPodLost(first)

		from := f.mark()
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(2)))
		f.awaitPods(ctx, set, "two pods", func(pods []*corev1.Pod) bool { return len(pods) == 2 })
		f.expectAvailableAtLeast(set, from, 2)
		Expect(f.created(set, from)).To(BeZero(), "pods created while scaling down")

		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(0)))
		f.awaitPods(ctx, set, "no pods", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	})

	It("takes pods that are not ready, and those that cost less, before others", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 4, gated()))
		pods := f.awaitPods(ctx, set, "four pods", func(pods []*corev1.Pod) bool { return count(pods, isLive) == 4 })
		unready, cheap, kept := pods[0], pods[1], pods[2:]
		for _, pod := range append(kept, cheap) {
			f.setGate(ctx, pod, corev1.ConditionTrue)
		}
		f.changePod(ctx, cheap, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{corev1.PodDeletionCost: "-1"}
		})
		f.awaitPods(ctx, set, "three available pods", func(pods []*corev1.Pod) bool {
			now := f.pod(cheap.Name)
			return count(pods, isAvailable) == 3 && now != nil && now.Annotations[corev1.PodDeletionCost] == "-1"
		})

		set = f.change(ctx, set, scaledTo(3))
		f.awaitPods(ctx, set, "the pod that is not ready to go", func([]*corev1.Pod) bool { return f.pod(unready.Name) == nil })
		f.awaitReady(ctx, set)
		set = f.change(ctx, set, scaledTo(2))
		f.awaitPods(ctx, set, "the pod that costs less to go", func([]*corev1.Pod) bool { return f.pod(cheap.Name) == nil })
		f.awaitReady(ctx, set)
		f.expectNoPodLost(kept)
	})

	It("is scaled through the scale subresource", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 1)))
		scale := &autoscalingv1.Scale{}
		Expect(cluster.client.SubResource("scale").Get(ctx, set, scale)).To(Succeed())
		Expect(scale.Spec.Replicas).To(Equal(int32(1)))
		Expect(scale.Status).To(Equal(autoscalingv1.ScaleStatus{Replicas: 1, Selector: "app=web"}))

		scale.Spec.Replicas = 3
		Expect(cluster.client.SubResource("scale").Update(ctx, set.DeepCopy(), client.WithSubResourceBody(scale))).To(Succeed())
		f.awaitStatus(ctx, set, "three available pods", func(s *v1beta1.RollSetStatus) bool { return s.AvailableReplicas == 3 })
		Expect(cluster.client.SubResource("scale").Get(ctx, set, scale)).To(Succeed())
		Expect(scale.Status.Replicas).To(Equal(int32(3)))
	})

	It("replaces pods that were deleted or have failed", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3)))
		pods := f.pods(set)
		f.delete(ctx, pods[0])
		changeStatus(ctx, pods[1].DeepCopy(), func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted" })

		f.awaitPods(ctx, set, "two new pods", func(now []*corev1.Pod) bool {
			replaced := func(pod *corev1.Pod) bool { return pod.UID != pods[0].UID && pod.UID != pods[1].UID }
			return len(now) == 3 && count(now, isAvailable) == 3 && count(now, replaced) == 3
		})
		f.awaitReady(ctx, set)
		f.expectNoPodLost(pods[2:])
	})

	It("leaves the pods running when it is deleted with --cascade=orphan, and has them collected otherwise", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3)))
		f.delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		f.expectGone(ctx, set)
		orphans := f.podsWith(func(pod *corev1.Pod) bool { return isLive(pod) && metav1.GetControllerOf(pod) == nil })
		Expect(orphans).To(HaveLen(3))

		By("making the set anew: it adopts them all")
		again := f.create(ctx, newSet("web", 3))
		f.await(ctx, "every orphan to be adopted", func() error {
			adopted := read(f.record, func() map[types.UID]bool {
				uids := map[types.UID]bool{}
				for _, c := range f.record.pods.changes {
					if metav1.IsControlledBy(c.object, again) {
						uids[c.object.UID] = true
					}
				}
				return uids
			})
			for _, orphan := range orphans {
				if !adopted[orphan.UID] {
					return fmt.Errorf("pod %s was not adopted", orphan.Name)
				}
			}
			return nil
		})
		again = f.awaitReady(ctx, again)
		f.awaitPods(ctx, again, "three pods", func(pods []*corev1.Pod) bool { return len(pods) == 3 })

		By("deleting it in the foreground")
		f.delete(ctx, again, client.PropagationPolicy(metav1.DeletePropagationForeground))
		f.expectGone(ctx, again)
		Expect(f.podsWith(isLive)).To(BeEmpty())
	})
})
