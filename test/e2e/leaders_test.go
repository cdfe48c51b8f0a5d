// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/patience"
)

// The label of a pod that leads or follows, as Patroni keeps it.
const (
	role    = "role"
	primary = "primary"
	replica = "replica"
)

var _ = Describe("A set with a leader", func() {
	f := newFixture()

	It("is updated followers first, and the leader only when another pod leads", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("db", 3, ordinal(), parallel(), leaderLast(600))))
		f.changePod(ctx, f.pods(set)[2], withRole(primary))
		keepRoles(ctx, set)
		f.awaitPods(ctx, set, "one leader and two followers", func(pods []*corev1.Pod) bool { return count(pods, follows) == 2 })

		from := f.mark()
		set = f.awaitReady(ctx, f.change(ctx, set, release("2")))
		Expect(isUpdated(set)).To(Succeed())
		f.expectAvailableAtLeast(set, from, 2)
		gone := f.gone(set, from)
		Expect(names(gone)).To(Equal([]string{"db-1", "db-0", "db-2"}))
		for _, pod := range gone {
			Expect(pod.Labels).To(HaveKeyWithValue(role, replica), "%s was deleted while it led", pod.Name)
		}
		Expect(stateOf(gone[2])).To(Equal(v1beta1.LifecyclePreparingDelete))
	})

	It("is updated all the same if nobody takes over in time, and an event says so", func(ctx SpecContext) {
		const seconds = 5
		set := f.awaitReady(ctx, f.create(ctx, newSet("db", 3, ordinal(), leaderLast(seconds))))
		f.changePod(ctx, f.pods(set)[1], withRole(primary))

		from := f.mark()
		set = f.change(ctx, set, release("2"))
		leader := f.awaitState(ctx, set, v1beta1.LifecyclePreparingDelete)
		f.awaitProgress(ctx, set, ContainSubstring("waiting for db-1: lifecycle hook preDelete waits until label role=primary is gone, at most until "))
		set = f.awaitReady(ctx, set)
		gone := f.gone(set, from)
		Expect(names(gone)).To(Equal([]string{"db-2", "db-0", "db-1"}))
		Expect(gone[2].UID).To(Equal(leader.UID))
		state, date, _ := strings.Cut(gone[2].Annotations[v1beta1.LifecycleSinceAnnotation], " ")
		Expect(state).To(Equal(string(v1beta1.LifecyclePreparingDelete)))
		since, err := time.Parse(time.RFC3339, date)
		Expect(err).NotTo(HaveOccurred())
		asked := gone[2].DeletionTimestamp.Add(-time.Duration(*gone[2].DeletionGracePeriodSeconds) * time.Second)
		Expect(asked.Sub(since)).To(And(
			BeNumerically(">=", (seconds-1)*time.Second), // both are in whole seconds
			BeNumerically("<=", seconds*time.Second+patience.For(2*time.Second)),
		))
		f.expectEvent(ctx, "HookTimedOut", "Went on with pod db-1 without lifecycle hook preDelete")
	})
})

// leaderLast lets pods that do not lead be updated first, and keeps the leader until another pod leads, for some seconds.
func leaderLast(seconds int32) option {
	return func(s *v1beta1.RollSet) {
		others := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: role, Operator: metav1.LabelSelectorOpNotIn, Values: []string{primary}},
		}}
		s.Spec.UpdateStrategy.RollingUpdate.PriorityStrategy = &v1beta1.UpdatePriorityStrategy{
			WeightPriority: []v1beta1.UpdatePriorityWeightTerm{{Weight: 100, MatchSelector: others}},
		}
		s.Spec.Lifecycle = &v1beta1.Lifecycle{PreDelete: &v1beta1.LifecycleHook{
			LabelsHandler: map[string]string{role: primary}, TimeoutSeconds: &seconds, OnTimeout: v1beta1.ProceedOnTimeout,
		}}
	}
}

func withRole(is string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels[role] = is }
}

func leads(pod *corev1.Pod) bool   { return pod.Labels[role] == primary }
func follows(pod *corev1.Pod) bool { return pod.Labels[role] == replica }

// keepRoles plays the program in the pods of a set until the spec ends: every pod has a role. When the leader is to be deleted,
// it hands over to a ready follower, first the one and then the other.
func keepRoles(ctx SpecContext, set *v1beta1.RollSet) {
	playing, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for playing.Err() == nil {
			keepRolesOnce(playing, set)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	DeferCleanup(func() { stop(); <-done })
}

// keepRolesOnce makes one change at most. A write that fails is tried again by the next call.
func keepRolesOnce(ctx context.Context, set *v1beta1.RollSet) {
	list := &corev1.PodList{}
	if err := cluster.client.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabels{"app": set.Name}); err != nil {
		return
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if isLive(&list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	write := func(pod *corev1.Pod, is string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"role":"`+is+`"}}}`))
		_ = cluster.client.Patch(ctx, pod, patch) // tried again
	}
	leader := slices.IndexFunc(pods, leads)
	for _, pod := range pods {
		switch {
		case pod.Labels[role] == "":
			write(pod, replica)
			return
		case leader >= 0 && stateOf(pods[leader]) == v1beta1.LifecyclePreparingDelete:
			write(pods[leader], replica)
			return
		case leader < 0 && isReady(pod) && stateOf(pod) != v1beta1.LifecyclePreparingDelete:
			write(pod, primary)
			return
		}
	}
}

// gone returns the pods of a set that began to terminate since the mark, in that order, as they were then.
func (f *fixture) gone(set *v1beta1.RollSet, from mark) (gone []*corev1.Pod) {
	GinkgoHelper()
	f.replay(set, from, func(_ string, pods []*corev1.Pod) {
		for _, pod := range pods {
			known := func(other *corev1.Pod) bool { return other.UID == pod.UID }
			if pod.DeletionTimestamp != nil && !slices.ContainsFunc(gone, known) {
				gone = append(gone, pod)
			}
		}
	})
	return gone
}

// expectEvent waits for an event with a reason whose note contains a text.
func (f *fixture) expectEvent(ctx context.Context, reason, text string) {
	GinkgoHelper()
	Eventually(func() ([]eventsv1.Event, error) {
		events := &eventsv1.EventList{}
		err := cluster.client.List(ctx, events, client.InNamespace(f.namespace))
		return events.Items, err
	}).WithContext(ctx).Should(ContainElement(And(HaveField("Reason", reason), HaveField("Note", ContainSubstring(text)))))
}
