// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("An update in place", func() {
	f := newFixture()

	// together are options as one.
	together := func(options ...option) option {
		return func(s *v1beta1.RollSet) {
			for _, o := range options {
				o(s)
			}
		}
	}
	annotated := template(func(t *corev1.PodTemplateSpec) {
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, "note", "new")
		t.Labels["note"] = "new"
	})
	type change struct {
		what      string
		from, to  option
		restarted []string
		// alike is whether the new image has the content of the old one. Then only the order of the kubelet's reports proves
		// that it runs, and a busy kubelet reports everything at once.
		alike bool
	}
	mark := func(containers ...string) []string { return containers }
	changes := []change{
		{"an image", image("web:1"), image("web:2"), mark("app"), false},
		{"an image of a pod without a probe", probeless(), image("web:2"), mark("app"), false},
		{"an image with the registry's host", image("localhost:5999/app:v1"), image("localhost:5999/app:v2"), mark("app"), false},
		{"a name in full for a short one", image("web:1"), image("docker.io/library/web:1"), mark("app"), true},
		{"another tag of the same image", image("web:1"), image("web:1-again"), mark("app"), true},
		{"an image that is known under a mirror's name", image("web:1"), image("registry.example/web:mirror"), mark("app"), true},
		{"a sidecar's image", image("web:1"), imageOf("sidecar", "sidecar:2"), mark("sidecar"), false},
		{"both images", image("web:1"), together(image("web:2"), imageOf("sidecar", "sidecar:2")), mark("app", "sidecar"), false},
		{"cpu", sized("10m", "32Mi"), sized("20m", "32Mi"), mark(), false},
		{"memory that restarts", sized("10m", "32Mi"), sized("10m", "40Mi"), mark("app"), false},
		{"an image and cpu", sized("10m", "32Mi"), together(image("web:2"), sized("20m", "32Mi")), mark("app"), false},
		{"metadata", image("web:1"), annotated, mark(), false},
		{"metadata and an image", image("web:1"), together(annotated, image("web:2")), mark("app"), false},
	}

	// There is a set for each change. All of them are created and changed at once, because a node spends most of its time
	// waiting.
	It("restarts the containers that change, each once, and no others", func(ctx SpecContext) {
		sets, before := make([]*v1beta1.RollSet, len(changes)), make([][]*corev1.Pod, len(changes))
		for i, c := range changes {
			sets[i] = f.submit(ctx, newSet(fmt.Sprintf("web-%d", i), 1, inPlace(), withSidecar(), soon(), c.from))
		}
		for i, c := range changes {
			before[i] = f.pods(ctx, f.awaitReady(ctx, sets[i]))
			sets[i] = f.change(ctx, sets[i], c.to)
		}
		for i, c := range changes {
			By(c.what)
			sets[i] = f.awaitReady(ctx, sets[i])
			if c.alike && f.pods(ctx, sets[i])[0].UID != before[i][0].UID {
				f.expectEvent(ctx, sets[i], "no proof of the update in place")
				continue
			}
			f.expectRestarted(ctx, sets[i], before[i], c.restarted...)
		}
	})

	It("of three pods ends with the last of them", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 3, inPlace()))
		before := f.pods(ctx, set)
		last := f.watchContainers(ctx, "web:2")
		set = f.update(ctx, set, image("web:2"))
		ended := time.Now()
		f.expectRestarted(ctx, set, before, "app")
		AddReportEntry(fmt.Sprintf("an update in place of 3 pods was complete %v after the last container was ready", ended.Sub(last()).Round(10*time.Millisecond)),
			ReportEntryVisibilityAlways)
	})

	It("to a digest restarts once", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 1, inPlace(), image("web:2")))
		id := f.pods(ctx, set)[0].Status.ContainerStatuses[0].ImageID
		_, digest, found := strings.Cut(id, "@")
		Expect(found).To(BeTrue(), "imageID %s", id)
		set = f.update(ctx, set, image("web:1"))
		before := f.pods(ctx, set)

		set = f.update(ctx, set, image("web@"+digest))
		f.expectRestarted(ctx, set, before, "app")
		f.expectServing(ctx, set, "2")
	})

	It("that lands on one that cannot be pulled corrects it, on the same pods", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 3, inPlace()))
		before := uids(f.pods(ctx, set))
		set = f.update(ctx, set, image("web:2"))

		set = f.change(ctx, set, image("web:missing"))
		f.await(ctx, set, "one pod to fail", func(s *v1beta1.RollSet) bool {
			return strings.Contains(progressOf(s), "ImagePull") || strings.Contains(progressOf(s), "CrashLoopBackOff")
		})
		set = f.update(ctx, set, image("web:3"))
		Expect(uids(f.pods(ctx, set))).To(Equal(before))
		f.expectServing(ctx, set, "3")
	})

	It("that crash-loops breaks one pod, and the next one repairs it where it is", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 3, inPlace()))
		before := uids(f.pods(ctx, set))
		set = f.change(ctx, set, image("web:crash"))
		f.await(ctx, set, "one pod to crash", func(s *v1beta1.RollSet) bool { return strings.Contains(progressOf(s), "CrashLoopBackOff") })
		broken := 0
		for _, pod := range f.pods(ctx, set) {
			if pod.Spec.Containers[0].Image == "web:crash" {
				broken++
			}
		}
		Expect(broken).To(Equal(1))
		set = f.update(ctx, set, image("web:2"))
		Expect(uids(f.pods(ctx, set))).To(Equal(before))
		f.expectServing(ctx, set, "2")
	})

	It("that is overtaken by another template ends at the last one", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 3, inPlace()))
		before := uids(f.pods(ctx, set))
		set = f.change(ctx, set, image("web:2"))
		f.awaitPods(ctx, set, "a pod to be changed", func(pods []*corev1.Pod) bool {
			for _, pod := range pods {
				if pod.Spec.Containers[0].Image == "web:2" {
					return true
				}
			}
			return false
		})
		set = f.update(ctx, set, image("web:3"))
		Expect(uids(f.pods(ctx, set))).To(Equal(before))
		f.expectServing(ctx, set, "3")
	})

	It("goes on where it was after the kubelet was killed and started again", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 2, inPlace()))
		before := f.pods(ctx, set)
		Expect(bed.node.KillKubelet(ctx)).To(Succeed())
		set = f.change(ctx, set, image("web:2"))
		f.awaitPods(ctx, set, "a closed gate", func(pods []*corev1.Pod) bool {
			for _, pod := range pods {
				for _, c := range pod.Status.Conditions {
					if c.Type == v1beta1.InPlaceUpdateReady && c.Status == corev1.ConditionFalse {
						return true
					}
				}
			}
			return false
		})
		Expect(meta.IsStatusConditionTrue(set.Status.Conditions, "Stalled")).To(BeFalse())
		Expect(bed.node.StartKubelet(ctx)).To(Succeed())
		set = f.awaitReady(ctx, set)
		f.expectRestarted(ctx, set, before, "app")
		f.expectServing(ctx, set, "2")
	})
})

// watchContainers returns when a container with the image was last seen to become ready.
func (f *fixture) watchContainers(ctx SpecContext, image string) (last func() time.Time) {
	GinkgoHelper()
	pods, err := bed.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(f.namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(pods.Stop)
	var at atomic.Int64
	at.Store(time.Now().UnixNano())
	ready := map[types.UID]bool{}
	go func() {
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || len(pod.Status.ContainerStatuses) == 0 || !strings.HasSuffix(pod.Status.ContainerStatuses[0].Image, image) {
				continue
			}
			if now := pod.Status.ContainerStatuses[0].Ready; now != ready[pod.UID] {
				ready[pod.UID] = now
				at.Store(time.Now().UnixNano())
			}
		}
	}()
	return func() time.Time { return time.Unix(0, at.Load()) }
}
