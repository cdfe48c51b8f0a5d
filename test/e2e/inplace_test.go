// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("An update in place", func() {
	f := newFixture()

	It("of an image restarts that container behind a closed gate, with three writes a pod", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 5, inPlace(), maxUnavailable("2"))))
		pods, from, bill := f.pods(set), f.mark(), f.openBill()

		set = f.awaitReady(ctx, f.change(ctx, set, withImage(cluster.nextImage())))
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods, "main")
		f.expectAvailableAtLeast(set, from, 3)
		f.expectInService(set, from)
		bill.expectPerPod(pods, "patch pods 1, patch pods/status 2")
	})

	It("of metadata touches no readiness, with one write a pod, and leaves what users have put on pods", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 4, inPlace(), maxUnavailable("1"), labeled("tier", "front"), annotated("note", "1"))))
		for _, pod := range f.pods(set) {
			f.changePod(ctx, pod, func(pod *corev1.Pod) {
				pod.Labels["user"] = "label"
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "user", "annotation")
			})
		}
		pods, from, bill := f.pods(set), f.mark(), f.openBill()

		set = f.awaitReady(ctx, f.change(ctx, set, annotated("note", "2"), labeled("new", ""), template(func(t *corev1.PodTemplateSpec) {
			delete(t.Labels, "tier")
		})))
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods)
		f.expectAvailableAtLeast(set, from, 4)
		for _, pod := range f.pods(set) {
			Expect(pod.Labels).To(And(HaveKeyWithValue("user", "label"), HaveKeyWithValue("new", ""), Not(HaveKey("tier"))))
			Expect(pod.Annotations).To(And(HaveKeyWithValue("user", "annotation"), HaveKeyWithValue("note", "2")))
		}
		bill.expectPerPod(pods, "patch pods 1")
	})

	It("of cpu touches no readiness, with two writes a pod; with an image, it is four", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3, inPlace(), maxUnavailable("1"), requesting("10m"))))
		pods, from, bill := f.pods(set), f.mark(), f.openBill()

		set = f.awaitReady(ctx, f.change(ctx, set, requesting("20m")))
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods)
		f.expectAvailableAtLeast(set, from, 3)
		bill.expectPerPod(pods, "patch pods 1, patch pods/resize 1")

		from, bill = f.mark(), f.openBill()
		set = f.awaitReady(ctx, f.change(ctx, set, requesting("30m"), withImage(cluster.nextImage())))
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods, "main")
		f.expectAvailableAtLeast(set, from, 2)
		f.expectInService(set, from)
		bill.expectPerPod(pods, "patch pods 1, patch pods/resize 1, patch pods/status 2")
		for _, pod := range f.pods(set) {
			Expect(containerOf(pod, "main").Resources.Requests.Cpu().String()).To(Equal("30m"))
		}
	})

	It("to more cpu than any node has is held under InPlaceOnly, and taken back by the next template", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 2, inPlaceOnly(), maxUnavailable("1"), requesting("10m"))))
		pods, from := f.pods(set), f.mark()

		set = f.change(ctx, set, requesting("100k"))
		f.awaitProgress(ctx, set, MatchRegexp("[nN]ode didn't have enough")) // as the API server says it, or the kubelet before 1.37
		set = f.awaitReady(ctx, f.change(ctx, set, requesting("20m")))
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods)
		f.expectAvailableAtLeast(set, from, 2)
	})

	It("restarts just the containers that change, of several and of sidecars", long, core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 2, inPlace(), maxUnavailable("1"), withHelpers())))
		from := f.mark()
		for _, changed := range [][]string{{"sidecar"}, {"helper"}, {"main", "sidecar"}} {
			By("changing " + strings.Join(changed, " and "))
			pods, bill := f.pods(set), f.openBill()
			var changes []option
			for _, name := range changed {
				image := cluster.nextImage()
				if name == "sidecar" && len(changed) > 1 { // it has that one already
					image = cluster.image()
				}
				changes = append(changes, withImageOf(name, image))
			}
			set = f.awaitReady(ctx, f.change(ctx, set, changes...))
			Expect(isUpdated(set)).To(Succeed())
			f.expectRestarted(ctx, set, pods, changed...)
			bill.expectPerPod(pods, "patch pods 1, patch pods/status 2")
		}
		f.expectAvailableAtLeast(set, from, 1)
		f.expectInService(set, from)
	})

	It("of what cannot be changed is held under InPlaceOnly, and says which field it is", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 2, inPlaceOnly(), maxUnavailable("1"))))
		pods, bill := f.pods(set), f.openBill()

		set = f.change(ctx, set, release("2"), withImage(cluster.nextImage()))
		f.awaitProgress(ctx, set, ContainSubstring("podUpdatePolicy InPlaceOnly: spec.containers[main].env: added"))
		f.quiet(ctx, still)
		f.expectRestarted(ctx, set, pods)
		bill.expectPerPod(nil, "")

		set = f.awaitReady(ctx, f.change(ctx, set, template(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Env = nil })))
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods, "main")
	})

	It("that crash-loops breaks maxUnavailable pods, and the next template repairs them where they are", long, func(ctx SpecContext) {
		crashing := crashingImage()
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3, inPlace(), maxUnavailable("1"), minReady(2))))
		pods, from := f.pods(set), f.mark()

		set = f.change(ctx, set, withImage(crashing))
		f.awaitProgress(ctx, set, MatchRegexp(`waiting for web-\w{5}: .*CrashLoopBackOff`))
		Expect(count(f.pods(set), at(f.set(set).Status.UpdateRevision))).To(Equal(1), "pods at the bad revision")

		set = f.awaitReady(ctx, f.change(ctx, set, withImage(cluster.nextImage()), minReady(0)))
		Expect(isUpdated(set)).To(Succeed())
		f.expectKept(set, pods)
		f.expectAvailableAtLeast(set, from, 2)
	})

	It("to an image that cannot be pulled breaks maxUnavailable pods, and the next template repairs them where they are", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 4, inPlace(), maxUnavailable("2"))))
		pods, from := f.pods(set), f.mark()

		set = f.change(ctx, set, withImage(cluster.unavailableImage()))
		f.awaitProgress(ctx, set, MatchRegexp(`2 of 4 pods updated; waiting for web-\w{5}: .*(ImagePull|CrashLoopBackOff)`))

		set = f.awaitReady(ctx, f.change(ctx, set, withImage(cluster.nextImage())))
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods, "main")
		f.expectAvailableAtLeast(set, from, 2)
		f.expectInService(set, from)
	})

	It("goes back half-way, and on to a third template, with the same pods", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 4, inPlace(), maxUnavailable("1"))))
		first, pods, from := set.Status.UpdateRevision, f.pods(set), f.mark()
		halfway := func(set *v1beta1.RollSet, old string) {
			GinkgoHelper()
			f.awaitPods(ctx, set, "two pods to be updated", func(pods []*corev1.Pod) bool { return count(pods, at(old)) == 2 })
		}

		set = f.change(ctx, set, withImage(cluster.nextImage()))
		halfway(set, first)
		set = f.awaitReady(ctx, f.change(ctx, set, withImage(cluster.image())))
		Expect(set.Status.UpdateRevision).To(Equal(first))
		f.expectKept(set, pods)
		untouched := slices.ContainsFunc(f.pods(set), func(pod *corev1.Pod) bool { return restartsOf(pod)["main"] == 0 })
		Expect(untouched).To(BeTrue(), "all pods have been restarted on the way back")

		set = f.change(ctx, set, withImage(cluster.nextImage()))
		halfway(set, first)
		set = f.awaitReady(ctx, f.change(ctx, set, withImage(cluster.image()), annotated("note", "3")))
		Expect(isUpdated(set)).To(Succeed())
		f.expectKept(set, pods)
		f.expectAvailableAtLeast(set, from, 3)
		f.expectInService(set, from)
	})

	It("stops at the partition, goes back when it is raised, and with surge takes no pod out of service", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3, inPlace(), maxUnavailable("1"), partition("1"))))
		pods, from := f.pods(set), f.mark()
		updated := func() int32 { return f.set(set).Status.UpdatedReplicas }

		set = f.awaitReady(ctx, f.change(ctx, set, withImage(cluster.nextImage())))
		Expect(updated()).To(Equal(int32(2)))
		set = f.awaitReady(ctx, f.change(ctx, set, partition("3")))
		Expect(updated()).To(BeZero())
		f.expectKept(set, pods)
		f.expectAvailableAtLeast(set, from, 2)

		from = f.mark()
		set = f.awaitReady(ctx, f.change(ctx, set, partition("0"), maxUnavailable("0"), maxSurge("1")))
		Expect(isUpdated(set)).To(Succeed())
		f.expectAvailableAtLeast(set, from, 3)
		f.expectLiveAtMost(set, from, 4)
		f.expectInService(set, from)
		Expect(f.deleted(set, from)).To(Equal(1), "pods deleted: the extra one takes the place of another")
	})

	It("takes broken pods first, and then those of the greatest weight", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 4, inPlace(), maxUnavailable("1"), gated(), heaviest("wave", "first")))
		for _, pod := range f.awaitPods(ctx, set, "four pods", func(pods []*corev1.Pod) bool { return len(pods) == 4 }) {
			f.setGate(ctx, pod, corev1.ConditionTrue)
		}
		set = f.awaitReady(ctx, set)
		pods, from := f.pods(set), f.mark()
		broken, heavy := pods[1], []*corev1.Pod{pods[0], pods[2]}
		for _, pod := range heavy {
			f.changePod(ctx, pod, func(pod *corev1.Pod) { pod.Labels["wave"] = "first" })
		}
		f.setGate(ctx, broken, corev1.ConditionFalse)
		f.awaitPods(ctx, set, "one pod to be broken", func(pods []*corev1.Pod) bool { return count(pods, isReady) == 3 })

		set = f.change(ctx, set, withImage(cluster.nextImage()))
		f.awaitPods(ctx, set, "the broken pod to run the new image", func([]*corev1.Pod) bool {
			return containerOf(f.pod(broken.Name), "main").Image == cluster.nextImage()
		})
		Expect(f.movedSince(set, from)).To(Equal([]string{broken.Name}))
		f.setGate(ctx, broken, corev1.ConditionTrue)

		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods, "main")
		order := f.movedSince(set, from)
		Expect(order[0]).To(Equal(broken.Name))
		Expect(order[1:3]).To(ConsistOf(names(heavy)))
		for _, pod := range heavy {
			Expect(f.pod(pod.Name).Labels).To(HaveKeyWithValue("wave", "first"))
		}
	})

	It("replaces pods that are deleted half-way", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 4, inPlace(), maxUnavailable("2"), withGrace(1))))
		from := f.mark()
		set = f.change(ctx, set, withImage(cluster.nextImage()))
		isClosed := func(pod *corev1.Pod) bool { return isLive(pod) && !isOpen(pod) }
		pods := f.awaitPods(ctx, set, "two closed gates", func(pods []*corev1.Pod) bool { return count(pods, isClosed) == 2 })
		gone := []*corev1.Pod{pods[slices.IndexFunc(pods, isClosed)], pods[slices.IndexFunc(pods, isOpen)]}
		for _, pod := range gone {
			f.delete(ctx, pod)
		}
		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		f.expectLiveAtMost(set, from, 4)
		f.expectInService(set, from)
		Expect(f.created(set, from)).To(Equal(2), "pods created")
		for _, pod := range pods {
			if now := f.pod(pod.Name); !slices.Contains(gone, pod) {
				Expect(now).NotTo(BeNil())
				Expect(restartsOf(now)).To(Equal(restarts{"main": 1}))
			}
		}
	})

	It("comes to its end although another client changes the gates fifty times a second, and writes no faster for it", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 2, inPlace(), maxUnavailable("1"))))
		pods, bill, begin := f.pods(set), f.openBill(), time.Now()
		set = f.change(ctx, set, withImage(cluster.nextImage()))
		f.turnAllTheTime(ctx, pods, 3*time.Second)

		// Ready may be true for a moment between two turns, and is reported a second later. So pods and status are checked
		// together.
		f.await(ctx, "all pods to be updated and in service", func() error {
			set = f.set(set)
			if !meta.IsStatusConditionTrue(set.Status.Conditions, "Ready") || count(f.pods(set), isAvailable) != len(pods) {
				return fmt.Errorf("%s is not Ready:\n%s", set.Name, describe(f.pods(set)))
			}
			return isUpdated(set)
		})
		f.expectRestarted(ctx, set, pods, "main")
		bill.expectAtMost("patch pods", 1)
		bill.expectAtMost("patch pods/status", 2+2*int(time.Since(begin).Seconds()+1))
	})

	It("goes on where it was when the manager is killed between any two writes", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 2, inPlace(), maxUnavailable("1"), withGrace(1))))
		pods, from, bill := f.pods(set), f.mark(), f.openBill()
		set = f.change(ctx, set, withImage(cluster.nextImage()))
		f.awaitPods(ctx, set, "a closed gate", func(pods []*corev1.Pod) bool { return count(pods, isOpen) == 1 })
		Expect(cluster.manager.kill()).To(Succeed())
		Expect(cluster.manager.start()).To(Succeed())
		f.awaitPods(ctx, set, "a patched pod", func(pods []*corev1.Pod) bool {
			return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image == cluster.nextImage() })
		})
		Expect(cluster.manager.kill()).To(Succeed())
		Expect(cluster.manager.start()).To(Succeed())

		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods, "main")
		f.expectAvailableAtLeast(set, from, 1)
		f.expectInService(set, from)
		bill.expectPerPod(pods, "patch pods 1, patch pods/status 2")
	})
})
