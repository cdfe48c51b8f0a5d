// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// The specs of the containers called StatefulSet follow Kubernetes' own end-to-end tests that need no application, with their names
// (test/e2e/apps/statefulset.go of Kubernetes 1.37). If a RollSet is meant to do better, the spec says how.

var _ = Describe("StatefulSet: basic functionality", func() {
	f := newFixture()

	It("should provide basic identity", core, func(ctx SpecContext) {
		f.createObject(ctx, headlessService("ss"))
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 3, ordinal(), claiming("datadir"), claiming("home"))))
		pods := f.awaitNames(ctx, set, numbered(set, 0, 1, 2)...)
		Expect(f.comings(set, 0)).To(Equal(numbered(set, 0, 1, 2)), "the order of creation")
		for i, pod := range pods {
			Expect(pod.Spec.Hostname).To(Equal(pod.Name))
			Expect(pod.Spec.Subdomain).To(Equal("ss"))
			Expect(pod.Labels).To(And(
				HaveKeyWithValue(v1beta1.PodIndexLabel, strconv.Itoa(i)), HaveKeyWithValue(v1beta1.PodNameLabel, pod.Name),
			))
			Expect(claimsOf(pod)).To(Equal(map[string]string{"datadir": "datadir-" + pod.Name, "home": "home-" + pod.Name}))
		}
		claims := f.awaitClaims(ctx, "six bound claims", func(claims []*corev1.PersistentVolumeClaim) bool {
			return len(claims) == 6 && !containsUnbound(claims)
		})

		By("restarting all pods")
		for _, pod := range pods {
			f.delete(ctx, pod)
		}
		f.awaitPods(ctx, set, "all pods to be new and ready", func(now []*corev1.Pod) bool {
			return len(now) == 3 && count(now, isAvailable) == 3 && now[0].UID != pods[0].UID && now[1].UID != pods[1].UID && now[2].UID != pods[2].UID
		})
		f.awaitNames(ctx, set, numbered(set, 0, 1, 2)...)
		Expect(uids(f.claims())).To(Equal(uids(claims)), "each pod is to find its volumes again")
	})

	It("should adopt matching orphans and release non-matching pods", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 1, ordinal())))
		pod := f.pod("ss-0")

		By("orphaning the pod")
		f.changePod(ctx, pod, func(pod *corev1.Pod) { pod.OwnerReferences = nil })
		f.awaitSamePod(ctx, pod, "to be adopted", func(now *corev1.Pod) bool { return metav1.IsControlledBy(now, set) })

		By("taking away the label that makes it match")
		f.changePod(ctx, pod, func(pod *corev1.Pod) { pod.Labels["app"] = "other" })
		f.awaitSamePod(ctx, pod, "to be released", func(now *corev1.Pod) bool { return metav1.GetControllerOf(now) == nil })
		failure := f.awaitCondition(ctx, set, "ReplicaFailure", metav1.ConditionTrue, "NameConflict")
		Expect(failure.Message).To(ContainSubstring("ss-0"))

		By("giving it back")
		f.changePod(ctx, pod, func(pod *corev1.Pod) { pod.Labels["app"] = "ss" })
		f.awaitSamePod(ctx, pod, "to be adopted again", func(now *corev1.Pod) bool { return metav1.IsControlledBy(now, set) })
		set = f.awaitReady(ctx, set)
		Expect(meta.FindStatusCondition(set.Status.Conditions, "ReplicaFailure")).To(BeNil())
	})

	It("should not deadlock when a pod's predecessor fails", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("ss", 2, ordinal(), gated()))
		f.openGate(ctx, set, "ss-0")
		f.awaitNames(ctx, set, numbered(set, 0, 1)...)
		healthy, unhealthy := f.pod("ss-0"), f.pod("ss-1")
		f.delete(ctx, healthy)
		f.awaitPods(ctx, set, "another ss-0", func([]*corev1.Pod) bool {
			return f.pod("ss-0") != nil && f.pod("ss-0").UID != healthy.UID
		})
		f.openGate(ctx, set, "ss-0")
		f.openGate(ctx, set, "ss-1")
		f.awaitReady(ctx, set)
		f.expectNoPodLost([]*corev1.Pod{unhealthy})
	})

	It("should have a working scale subresource", long, func(ctx SpecContext) {
		expectWorkingScale(ctx, f, newSet("ss", 1, ordinal()))
	})

	It("should list, patch and delete a collection of StatefulSets", func(ctx SpecContext) {
		expectWorkingCollection(ctx, f, newSet("ss", 1, ordinal()))
	})

	It("should validate Statefulset Status endpoints", func(ctx SpecContext) {
		expectWorkingStatus(ctx, f, newSet("ss", 1, ordinal()))
	})

	It("Should recreate evicted statefulset", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 1, ordinal())))
		evicted := f.pod("ss-0").DeepCopy()
		changeStatus(ctx, evicted, func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted" })
		f.awaitPods(ctx, set, "another ss-0", func(pods []*corev1.Pod) bool {
			return len(pods) == 1 && pods[0].UID != evicted.UID && pods[0].Name == "ss-0" && isAvailable(pods[0])
		})
		f.awaitReady(ctx, set)
	})
})

var _ = Describe("StatefulSet: start ordinals", func() {
	f := newFixture()

	DescribeTable("moves the pods to the new range", func(ctx SpecContext, before, after []option, from, to []int, most int) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 2, append(before, ordinal())...)))
		f.awaitNames(ctx, set, numbered(set, from...)...)
		if after == nil {
			return
		}
		moved := f.mark()
		set = f.change(ctx, set, after...)
		f.awaitNames(ctx, set, numbered(set, to...)...)
		f.awaitReady(ctx, set)
		f.expectLiveAtMost(set, moved, most)
		f.expectAvailableAtLeast(set, moved, 1)
	},
		Entry("Setting .start ordinal", long, []option{startingAt(2)}, nil, []int{2, 3}, nil, 2),
		Entry("Increasing .start ordinal", long, []option{startingAt(2)}, []option{startingAt(4)}, []int{2, 3}, []int{4, 5}, 2),
		// Surplus pods wait for the members below them, and members come first.
		Entry("Decreasing .start ordinal", long, []option{startingAt(3)}, []option{startingAt(2)}, []int{3, 4}, []int{2, 3}, 3),
		Entry("Removing .start ordinal", []option{startingAt(3)}, []option{withoutStart}, []int{3, 4}, []int{0, 1}, 4),
	)
})

func withoutStart(s *v1beta1.RollSet) { s.Spec.Ordinals = nil }

// headlessService governs the names of the pods of a set.
func headlessService(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}},
		},
	}
}

// claimsOf returns the claims that a pod mounts, by volume.
func claimsOf(pod *corev1.Pod) map[string]string {
	all := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			all[v.Name] = v.PersistentVolumeClaim.ClaimName
		}
	}
	return all
}

func containsUnbound(claims []*corev1.PersistentVolumeClaim) bool {
	for _, c := range claims {
		if c.Status.Phase != corev1.ClaimBound {
			return true
		}
	}
	return false
}

// awaitSamePod waits until a pod is as wanted, and fails if it is gone.
func (f *fixture) awaitSamePod(ctx context.Context, pod *corev1.Pod, what string, holds func(*corev1.Pod) bool) {
	GinkgoHelper()
	f.await(ctx, pod.Name+" "+what, func() error {
		now := f.pod(pod.Name)
		switch {
		case now == nil || now.UID != pod.UID || !isLive(now):
			return errors.New("it is gone")
		case !holds(now):
			return fmt.Errorf("it is:\n%s", inYAML(now.ObjectMeta))
		default:
			return nil
		}
	})
}

// expectWorkingScale reads, replaces and patches the scale of a set that has one pod.
func expectWorkingScale(ctx context.Context, f *fixture, wanted *v1beta1.RollSet) {
	GinkgoHelper()
	set := f.awaitReady(ctx, f.create(ctx, wanted))
	scale := &autoscalingv1.Scale{}
	Expect(cluster.client.SubResource("scale").Get(ctx, set, scale)).To(Succeed())
	Expect(scale.Spec.Replicas).To(Equal(int32(1)))
	Expect(scale.Status.Replicas).To(Equal(int32(1)))

	scale.Spec.Replicas = 2
	Expect(cluster.client.SubResource("scale").Update(ctx, set.DeepCopy(), client.WithSubResourceBody(scale))).To(Succeed())
	f.awaitStatus(ctx, set, "two available pods", func(s *v1beta1.RollSetStatus) bool { return s.AvailableReplicas == 2 })

	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))
	Expect(cluster.client.SubResource("scale").Patch(ctx, set.DeepCopy(), patch, client.WithSubResourceBody(scale))).To(Succeed())
	Expect(scale.Spec.Replicas).To(Equal(int32(4)))
	f.awaitStatus(ctx, set, "four available pods", func(s *v1beta1.RollSetStatus) bool { return s.AvailableReplicas == 4 })
	Expect(*f.set(set).Spec.Replicas).To(Equal(int32(4)))
}

// expectWorkingCollection lists, patches and deletes a set by its labels.
func expectWorkingCollection(ctx context.Context, f *fixture, wanted *v1beta1.RollSet) {
	GinkgoHelper()
	wanted.Labels = map[string]string{"collection": "yes"}
	set := f.awaitReady(ctx, f.create(ctx, wanted))
	sets := &v1beta1.RollSetList{}
	labeled := []client.ListOption{client.InNamespace(f.namespace), client.MatchingLabels{"collection": "yes"}}
	Expect(cluster.client.List(ctx, sets, labeled...)).To(Succeed())
	Expect(sets.Items).To(HaveLen(1))

	patch := []byte(`{"metadata":{"labels":{"patched":"yes"}},"spec":{"replicas":2,"template":{"spec":{"terminationGracePeriodSeconds":2}}}}`)
	patched := set.DeepCopy()
	Expect(cluster.client.Patch(ctx, patched, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	f.caughtUp(ctx)
	set = f.awaitReady(ctx, patched)
	Expect(set.Labels).To(HaveKeyWithValue("patched", "yes"))
	Expect(f.pods(set)).To(HaveLen(2))
	Expect(f.pods(set)[0].Spec.TerminationGracePeriodSeconds).To(HaveValue(Equal(int64(2))))

	Expect(cluster.client.DeleteAllOf(ctx, &v1beta1.RollSet{}, client.InNamespace(f.namespace), client.MatchingLabels{"collection": "yes"})).To(Succeed())
	f.expectGone(ctx, set)
}

// expectWorkingStatus reads, replaces and patches the status of a set. A condition of another client must stay when the
// controller writes its own.
func expectWorkingStatus(ctx context.Context, f *fixture, wanted *v1beta1.RollSet) {
	GinkgoHelper()
	set := f.awaitReady(ctx, f.create(ctx, wanted))
	foreign := metav1.Condition{
		Type: "StatusUpdate", Status: metav1.ConditionTrue, Reason: "E2E", Message: "Set from an e2e test", LastTransitionTime: set.CreationTimestamp,
	}
	now := &v1beta1.RollSet{}
	Eventually(func() error { // the controller may be writing as well
		if err := cluster.client.Get(ctx, client.ObjectKeyFromObject(set), now); err != nil {
			return err
		}
		now.Status.Conditions = append(now.Status.Conditions, foreign)
		return cluster.client.Status().Update(ctx, now)
	}).WithContext(ctx).Should(Succeed())

	before := now.DeepCopy()
	foreign.Type = "StatusPatched"
	now.Status.Conditions = append(now.Status.Conditions, foreign)
	Expect(cluster.client.Status().Patch(ctx, now, client.MergeFrom(before))).To(Succeed())

	set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(2)))
	f.awaitStatus(ctx, set, "both foreign conditions", func(s *v1beta1.RollSetStatus) bool {
		return s.AvailableReplicas == 2 &&
			meta.IsStatusConditionTrue(s.Conditions, "StatusUpdate") && meta.IsStatusConditionTrue(s.Conditions, "StatusPatched")
	})
}
