// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
)

// hookMark is the mark of the hooks in these specs: a label and a finalizer.
const hookMark = "example.com/hook"

var _ = Describe("A lifecycle hook", func() {
	f := newFixture()
	hook := &v1beta1.LifecycleHook{LabelsHandler: map[string]string{hookMark: "on"}, FinalizersHandler: []string{hookMark}}
	withdrawing := hook.DeepCopy()
	withdrawing.MarkPodNotReady = true

	// Pods that keep the finalizer would keep the namespace.
	AfterEach(func(ctx SpecContext) {
		for _, pod := range f.podsWith(isHooked) {
			f.unhook(ctx, pod)
		}
	})

	It("before deletion holds a pod back until both of its marks are gone, and lets it be if it is wanted again", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3, hooks(v1beta1.Lifecycle{PreDelete: hook}), hooked())))
		pods, from := f.pods(set), f.mark()

		set = f.change(ctx, set, scaledTo(2))
		waiting := f.awaitState(ctx, set, v1beta1.LifecyclePreparingDelete)
		f.awaitProgress(ctx, set, ContainSubstring("waiting for "+waiting.Name+": lifecycle hook preDelete waits until label "+hookMark+"=on is gone"))

		By("wanting it again")
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(3)))
		f.expectKept(set, pods)
		Expect(stateOf(f.pod(waiting.Name))).To(Equal(v1beta1.LifecycleNormal))

		By("taking the label away, and then the finalizer")
		set = f.change(ctx, set, scaledTo(2))
		waiting = f.awaitState(ctx, set, v1beta1.LifecyclePreparingDelete)
		f.changePod(ctx, waiting, func(pod *corev1.Pod) { delete(pod.Labels, hookMark) })
		f.awaitProgress(ctx, set, ContainSubstring("lifecycle hook preDelete waits until finalizer "+hookMark+" is gone"))
		Expect(f.deleted(set, from)).To(BeZero())
		f.unhook(ctx, waiting)
		f.awaitReady(ctx, set)
		f.expectGone(ctx, waiting)
	})

	It("before an update in place holds it back, and after it the pod is not available until it has its marks again", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 2, inPlace(), maxUnavailable("1"), hooks(v1beta1.Lifecycle{InPlaceUpdate: withdrawing}), hooked())))
		pods, from := f.pods(set), f.mark()

		set = f.change(ctx, set, withImage(cluster.nextImage()))
		for range pods {
			pod := f.awaitState(ctx, set, v1beta1.LifecyclePreparingUpdate)
			f.awaitProgress(ctx, set, ContainSubstring("waiting for "+pod.Name+": lifecycle hook inPlaceUpdate waits until label "+hookMark+"=on is gone"))
			Expect(pod.Spec.Containers[0].Image).To(Equal(cluster.image()))
			f.unhook(ctx, pod)

			pod = f.awaitState(ctx, set, v1beta1.LifecycleUpdated)
			f.awaitProgress(ctx, set, ContainSubstring("waiting for "+pod.Name+": lifecycle hook inPlaceUpdate waits for label "+hookMark+"=on"))
			Expect(isReady(f.pod(pod.Name))).To(BeFalse(), "the hook marks pods not ready")
			f.changePod(ctx, pod, markHooked)
		}
		set = f.awaitReady(ctx, set)
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods, "main")
		f.expectAvailableAtLeast(set, from, 1)
		f.expectInService(set, from)
	})

	It("of new pods keeps them out of service until they carry its marks", func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 2, hooks(v1beta1.Lifecycle{PreNormal: withdrawing})))
		f.awaitProgress(ctx, set, MatchRegexp(`waiting for web-\w{5}: lifecycle hook preNormal waits for label `+hookMark+`=on`))
		runs := func(pod *corev1.Pod) bool { return containerOf(pod, "main").Ready }
		pods := f.awaitPods(ctx, set, "two pods that run", func(pods []*corev1.Pod) bool { return count(pods, runs) == 2 })
		for _, pod := range pods {
			Expect(isReady(f.pod(pod.Name))).To(BeFalse())
			f.changePod(ctx, pod, markHooked)
		}
		set = f.awaitReady(ctx, set)
		for _, pod := range f.pods(set) {
			Expect(stateOf(pod)).To(Equal(v1beta1.LifecycleNormal))
		}
	})

	It("that waits is forgotten on the way back, and lets all pods go when it is taken away", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 2, inPlace(), maxUnavailable("1"), hooks(v1beta1.Lifecycle{InPlaceUpdate: hook}), hooked())))
		pods, from := f.pods(set), f.mark()

		set = f.change(ctx, set, withImage(cluster.nextImage()))
		f.awaitState(ctx, set, v1beta1.LifecyclePreparingUpdate)
		set = f.awaitReady(ctx, f.change(ctx, set, withImage(cluster.image())))
		f.expectRestarted(ctx, set, pods)

		set = f.change(ctx, set, withImage(cluster.nextImage()))
		f.awaitState(ctx, set, v1beta1.LifecyclePreparingUpdate)
		set = f.awaitReady(ctx, f.change(ctx, set, func(s *v1beta1.RollSet) { s.Spec.Lifecycle = nil }))
		Expect(isUpdated(set)).To(Succeed())
		f.expectRestarted(ctx, set, pods, "main")
		f.expectAvailableAtLeast(set, from, 1)
	})
})

// hooks sets the hooks of a set, and hooked gives its pods the marks from the start.
func hooks(l v1beta1.Lifecycle) option {
	return func(s *v1beta1.RollSet) { s.Spec.Lifecycle = &l }
}

func hooked() option {
	return template(func(t *corev1.PodTemplateSpec) { t.Labels[hookMark], t.Finalizers = "on", []string{hookMark} })
}

// markHooked gives a pod both marks.
func markHooked(pod *corev1.Pod) {
	pod.Labels[hookMark] = "on"
	pod.Finalizers = append(pod.Finalizers, hookMark)
}

// unhook removes both marks from a pod.
func (f *fixture) unhook(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	f.changePod(ctx, pod, func(pod *corev1.Pod) {
		delete(pod.Labels, hookMark)
		pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(name string) bool { return name == hookMark })
	})
}

func isHooked(pod *corev1.Pod) bool { return slices.Contains(pod.Finalizers, hookMark) }

func stateOf(pod *corev1.Pod) v1beta1.LifecycleState {
	return v1beta1.LifecycleState(pod.Labels[v1beta1.LifecycleStateLabel])
}

// awaitState waits until exactly one pod of a set is in a state, and returns it.
func (f *fixture) awaitState(ctx context.Context, set *v1beta1.RollSet, state v1beta1.LifecycleState) *corev1.Pod {
	GinkgoHelper()
	is := func(pod *corev1.Pod) bool { return stateOf(pod) == state }
	pods := f.awaitPods(ctx, set, "a pod "+string(state), func(pods []*corev1.Pod) bool { return count(pods, is) == 1 })
	return pods[slices.IndexFunc(pods, is)]
}
