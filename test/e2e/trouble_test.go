// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

var _ = Describe("Trouble", func() {
	f := newFixture()

	It("stops at maxUnavailable pods with an image that cannot be pulled, says so, and is repaired by the next edit", core, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 6, maxUnavailable("2"))))
		from := f.mark()

		set = f.change(ctx, set, withImage(cluster.unavailableImage()))
		f.awaitProgress(ctx, set, MatchRegexp(`waiting for web-\w{5}: .*ImagePull`))
		f.quiet(ctx, still)
		Expect(count(f.pods(set), at(f.set(set).Status.UpdateRevision))).To(Equal(2), "pods at the bad revision")

		set = f.awaitReady(ctx, f.change(ctx, set, withImage(cluster.image()), release("2")))
		Expect(isUpdated(set)).To(Succeed())
		f.expectAvailableAtLeast(set, from, 4)
		f.expectLiveAtMost(set, from, 6)
	})

	It("goes back to the template before without touching the healthy pods", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 5, maxUnavailable("2"))))
		bad := f.change(ctx, set, withImage(cluster.unavailableImage()))
		f.awaitProgress(ctx, bad, ContainSubstring("ImagePull"))
		f.quiet(ctx, still)
		healthy := f.podsWith(at(set.Status.UpdateRevision))
		Expect(healthy).To(HaveLen(3))

		again := f.awaitReady(ctx, f.change(ctx, bad, withImage(cluster.image())))
		Expect(again.Status.UpdateRevision).To(Equal(set.Status.UpdateRevision))
		f.expectNoPodLost(healthy)
	})

	It("repairs a set whose first template could not be scheduled", long, func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 3, requesting("100k")))
		f.awaitProgress(ctx, set, MatchRegexp(`waiting for web-\w{5}: Unschedulable: .*Insufficient cpu`))
		f.awaitCondition(ctx, set, "Ready", metav1.ConditionFalse, "")
		f.awaitCondition(ctx, set, "Available", metav1.ConditionFalse, "")

		set = f.awaitReady(ctx, f.change(ctx, set, requesting("1m")))
		Expect(isUpdated(set)).To(Succeed())
		f.expectLiveAtMost(set, 0, 3)
	})

	It("does not let an update that cannot be scheduled take more than maxUnavailable pods", long, func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 4, maxUnavailable("1"), requesting("1m"))))
		from := f.mark()
		set = f.change(ctx, set, requesting("100k"))
		f.awaitProgress(ctx, set, ContainSubstring("Insufficient cpu"))
		f.quiet(ctx, still)

		set = f.awaitReady(ctx, f.change(ctx, set, requesting("2m")))
		Expect(isUpdated(set)).To(Succeed())
		f.expectAvailableAtLeast(set, from, 3)
	})

	It("says that the quota is full, and goes on when there is room", core, func(ctx SpecContext) {
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "few"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}},
		}
		f.createObject(ctx, quota)
		f.quotaInForce(ctx, quota)

		set := f.create(ctx, newSet("web", 4))
		failure := f.awaitCondition(ctx, set, "ReplicaFailure", metav1.ConditionTrue, "FailedCreate")
		Expect(failure.Message).To(ContainSubstring("exceeded quota: few"))
		f.awaitPods(ctx, set, "two available pods", func(pods []*corev1.Pod) bool { return count(pods, isAvailable) == 2 })

		now := quota.DeepCopy()
		update(ctx, quota, now, func() { now.Spec.Hard[corev1.ResourcePods] = resource.MustParse("10") })
		set = f.awaitReady(ctx, set)
		f.awaitStatus(ctx, set, "no ReplicaFailure", func(s *v1beta1.RollSetStatus) bool {
			return meta.FindStatusCondition(s.Conditions, "ReplicaFailure") == nil
		})
		f.expectLiveAtMost(set, 0, 4)
	})

	refused := map[string]struct {
		change func(*corev1.PodTemplateSpec)
		words  string
	}{
		"the name of a container": {
			func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Name = "Not_A_Name" },
			`spec.containers[0].name: Invalid value: "Not_A_Name"`,
		},
		"a mount without its volume": {
			func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "absent", MountPath: "/absent"}}
			},
			`spec.containers[0].volumeMounts[0].name: Not found: "absent"`,
		},
	}
	for what, c := range refused {
		It("touches no pod for a template that the API server refuses: "+what, long, func(ctx SpecContext) {
			set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3)))
			pods := f.pods(set)

			set = f.change(ctx, set, template(c.change))
			failure := f.awaitCondition(ctx, set, "ReplicaFailure", metav1.ConditionTrue, "InvalidTemplate")
			Expect(failure.Message).To(ContainSubstring(c.words))
			f.awaitCondition(ctx, set, "Stalled", metav1.ConditionTrue, "")
			f.quiet(ctx, still)
			f.expectNoPodLost(pods)

			set = f.awaitReady(ctx, f.change(ctx, set, template(func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Name, t.Spec.Containers[0].VolumeMounts = "main", nil
			}), release("2")))
			Expect(isUpdated(set)).To(Succeed())
			Expect(meta.FindStatusCondition(set.Status.Conditions, "ReplicaFailure")).To(BeNil())
		})
	}

	It("says of a new set that the API server refuses its template, and creates the pods once it is mended", core, func(ctx SpecContext) {
		set := f.create(ctx, newSet("web", 2, template(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Name = "Not_A_Name" })))
		failure := f.awaitCondition(ctx, set, "ReplicaFailure", metav1.ConditionTrue, "")
		Expect(failure.Message).To(ContainSubstring(`spec.containers[0].name: Invalid value: "Not_A_Name"`))

		set = f.awaitReady(ctx, f.change(ctx, set, template(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Name = "main" })))
		Expect(isUpdated(set)).To(Succeed())
	})

	It("creates and changes nothing in a namespace that is being deleted", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("web", 3)))
		held := f.changePod(ctx, f.pods(set)[0], func(pod *corev1.Pod) {
			pod.Finalizers = append(pod.Finalizers, "e2e.rollset.dev/hold") // so that the namespace takes a while
		})
		from := f.mark()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
		f.delete(ctx, namespace)
		f.awaitPods(ctx, set, "only the held pod", func(pods []*corev1.Pod) bool { return len(pods) == 1 })
		f.quiet(ctx, still)
		Expect(f.created(set, from)).To(BeZero())
		if cluster.auditLog != "" {
			log := auditFrom()
			f.quiet(ctx, 2*still)
			Expect(log.requests(f.inNamespace())).To(BeEmpty(), "attempts that cannot succeed")
		}

		f.changePod(ctx, held, func(pod *corev1.Pod) { pod.Finalizers = nil })
		f.expectGone(ctx, namespace)
	})
})
