// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
)

var _ = Describe("Ownership", func() {
	f := newFixture()

	It("adopts a pod without a controller, and releases one that no longer matches", core, func(ctx SpecContext) {
		set := newSet("web", 2)
		orphan := barePod(set, "stray")
		f.createObject(ctx, orphan)
		set = f.create(ctx, set)
		f.await(ctx, "the pod to be adopted", func() error {
			adopted := read(f.record, func() bool {
				for _, c := range f.record.pods.changes {
					if c.object.UID == orphan.UID && metav1.IsControlledBy(c.object, set) {
						return true
					}
				}
				return false
			})
			if !adopted {
				return errors.New("it never was")
			}
			return nil
		})
		set = f.awaitReady(ctx, set)
		f.expectLiveAtMost(set, 0, 2)

		released := f.pods(set)[0]
		f.changePod(ctx, released, func(pod *corev1.Pod) { pod.Labels["app"] = "other" })
		f.await(ctx, "the pod to be released", func() error {
			if now := f.pod(released.Name); now == nil || metav1.GetControllerOf(now) != nil {
				return errors.New("it is gone, or still controlled")
			}
			return nil
		})
		f.awaitPods(ctx, set, "another pod in its place", func(pods []*corev1.Pod) bool { return count(pods, isAvailable) == 2 })
		Expect(isLive(f.pod(released.Name))).To(BeTrue(), "the released pod is alive")

		By("labeling it as before: it is adopted, and one pod is too many")
		f.changePod(ctx, released, func(pod *corev1.Pod) { pod.Labels["app"] = "web" })
		f.await(ctx, "no pod without controller", func() error {
			for _, pod := range f.podsWith(func(*corev1.Pod) bool { return true }) {
				if !metav1.IsControlledBy(pod, set) {
					return fmt.Errorf("pod %s", pod.Name)
				}
			}
			return nil
		})
		f.awaitPods(ctx, set, "two pods", func(pods []*corev1.Pod) bool { return len(pods) == 2 })
	})

	It("touches no pod of others, though it has the labels or the name", func(ctx SpecContext) {
		set := newSet("web", 0)
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}
		f.createObject(ctx, owner)
		foreign := barePod(set, "foreign")
		foreign.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true),
		}}
		f.createObject(ctx, foreign)
		set = f.create(ctx, set)
		set = f.awaitReady(ctx, set)

		By("taking the first name that the set would use")
		other := barePod(newSet("another", 0), firstName(set))
		f.createObject(ctx, other)
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(3)))
		f.awaitPods(ctx, set, "three pods of its own", func(pods []*corev1.Pod) bool { return count(pods, isAvailable) == 3 })

		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(0)))
		f.awaitPods(ctx, set, "no pods of its own", func(pods []*corev1.Pod) bool { return len(pods) == 0 })
		for _, pod := range []*corev1.Pod{foreign, other} {
			now := f.pod(pod.Name)
			Expect(now).NotTo(BeNil(), pod.Name)
			Expect(now.UID).To(Equal(pod.UID))
			Expect(isLive(now)).To(BeTrue(), pod.Name)
			Expect(now.OwnerReferences).To(Equal(pod.OwnerReferences))
			delete(now.Labels, corev1.LabelTopologyZone) // the API server copies it from the node
			Expect(now.Labels).To(Equal(pod.Labels))
		}
	})

	It("lets only one of two sets with the same selector have a pod", func(ctx SpecContext) {
		shared := func(s *v1beta1.RollSet) {
			s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shared"}}
			s.Spec.Template.Labels = map[string]string{"app": "shared"}
		}
		one := f.create(ctx, newSet("one", 3, shared))
		two := f.create(ctx, newSet("two", 3, shared))
		f.awaitReady(ctx, one)
		f.awaitReady(ctx, two)
		f.quiet(ctx, still)
		Expect(f.pods(one)).To(HaveLen(3))
		Expect(f.pods(two)).To(HaveLen(3))
		Expect(f.deleted(one, 0) + f.deleted(two, 0)).To(BeZero())
	})
})

// firstName returns the name that a set with random names gives to its first pod.
func firstName(set *v1beta1.RollSet) string {
	return set.Name + "-" + identity.NewSequence(set.UID).At(0)
}
