// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/testing/patience"
)

var _ = Describe("Ordinals in numbers", func() {
	f := newFixture()

	BeforeEach(onLocalCluster) // for its audit log

	// writes are the manager's requests for objects of one kind, by verb.
	writes := func(begun audit, resource string) map[string]int {
		counts := byKind(begun.requests(f.inNamespace()))
		for kind := range counts {
			if kind != "create "+resource && kind != "delete "+resource && kind != "patch "+resource && kind != "update "+resource {
				delete(counts, kind)
			}
		}
		return counts
	}

	It("creates and scales down many pods in batches", func(ctx SpecContext) {
		replicas := many()
		begun, from := auditFrom(), time.Now()
		// No scheduler writes to these pods. Its writes would make deletes fail, whose precondition is the version of the pod.
		set := f.create(ctx, newSet("ss", int32(replicas), ordinal(), parallel(), template(func(t *corev1.PodTemplateSpec) { t.Spec.SchedulerName = "none" })))
		f.awaitPods(ctx, set, "all pods", func(pods []*corev1.Pod) bool { return len(pods) == replicas })
		created := time.Since(from)
		Expect(writes(begun, "pods")).To(Equal(map[string]int{"create pods": replicas}))
		Expect(overlapping(begun.requests(func(r request) bool {
			return r.Namespace == f.namespace && r.Verb == "create" && r.Resource == "pods"
		}))).To(BeTrue(), "no two creates were under way at the same time")

		begun, from = auditFrom(), time.Now()
		set = f.change(ctx, set, scaledTo(0))
		f.awaitNames(ctx, set)
		Expect(writes(begun, "pods")).To(Equal(map[string]int{"delete pods": replicas}))
		AddReportEntry(fmt.Sprintf("%d pods", replicas), fmt.Sprintf("created in %v, gone in %v", created.Round(time.Millisecond), time.Since(from).Round(time.Millisecond)))
	})

	It("creates the next pod as soon as the one before is available", func(ctx SpecContext) {
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 10, ordinal())))
		var delays []time.Duration
		for i, pod := range f.pods(set)[1:] {
			before := fmt.Sprintf("ss-%d", i)
			delays = append(delays, f.firstSeen(pod.Name, func(*corev1.Pod) bool { return true }).Sub(f.firstSeen(before, isReady)))
		}
		slices.Sort(delays)
		AddReportEntry("from ready to the next pod", fmt.Sprintf("median %v, longest %v", delays[len(delays)/2], delays[len(delays)-1]))
		Expect(delays[len(delays)/2]).To(BeNumerically("<", patience.For(time.Second)), "the median: longer than a poll or a retry would take")
	})

	It("writes once for each pod and claim that it makes, and twice for each pod that it recreates", func(ctx SpecContext) {
		begun := auditFrom()
		set := f.awaitReady(ctx, f.create(ctx, newSet("ss", 4, ordinal(), claiming("data"), claiming("logs"), keeping(remove, remove))))
		Expect(writes(begun, "pods")).To(Equal(map[string]int{"create pods": 4}))
		Expect(writes(begun, "persistentvolumeclaims")).To(Equal(map[string]int{"create persistentvolumeclaims": 8}))

		begun = auditFrom()
		set = f.awaitReady(ctx, f.change(ctx, set, release("2")))
		Expect(writes(begun, "pods")).To(Equal(map[string]int{"create pods": 4, "delete pods": 4}))
		Expect(writes(begun, "persistentvolumeclaims")).To(BeEmpty())

		begun = auditFrom()
		set = f.awaitReady(ctx, f.change(ctx, set, scaledTo(2)))
		f.awaitClaims(ctx, "four claims", func(claims []*corev1.PersistentVolumeClaim) bool { return len(claims) == 4 })
		Expect(writes(begun, "pods")).To(Equal(map[string]int{"delete pods": 2}))
		Expect(writes(begun, "persistentvolumeclaims")).To(Equal(map[string]int{"patch persistentvolumeclaims": 4}), "handed over to the pods")

		f.quiet(ctx, still) // so that the status for the steps before has been written
		begun = auditFrom()
		Expect(cluster.manager.stop()).To(Succeed())
		Expect(cluster.manager.start()).To(Succeed())
		f.awaitReady(ctx, f.change(ctx, set, func(s *v1beta1.RollSet) { s.Annotations = map[string]string{"looked": "at"} }))
		f.quiet(ctx, time.Second)
		Expect(begun.requests(f.inNamespace())).To(BeEmpty(), "requests in a set that is complete")
	})
})

// overlapping reports whether two requests were under way at the same time. The audit log is in the order in which requests
// ended. In a series of single ones that is also the order in which they began.
func overlapping(requests []request) bool {
	return !slices.IsSortedFunc(requests, func(a, b request) int { return a.At.Compare(b.At) })
}

// firstSeen returns when the record first showed a pod that is as wanted.
func (f *fixture) firstSeen(name string, is func(*corev1.Pod) bool) time.Time {
	GinkgoHelper()
	changes := read(f.record, func() []change[*corev1.Pod] { return slices.Clone(f.record.pods.changes) })
	for _, c := range changes {
		if c.object.Name == name && is(c.object) {
			return c.at
		}
	}
	Fail("the record never showed " + name)
	return time.Time{}
}
