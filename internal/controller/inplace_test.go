// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/podcontrol"
)

var _ = Describe("In place", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) {
		f = newFixture(ctx)
		rolling := &f.set.Spec.UpdateStrategy.RollingUpdate
		rolling.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePod
		rolling.MaxUnavailable = new(intstr.FromInt32(1))
	})

	It("a new image costs three writes a pod, no pod and one restart", func() {
		f.create()
		before := f.snapshot()
		witness := f.watch(3)
		Eventually(witness.extremes).Should(Equal("most 3, least available 3"))
		writes := f.podWrites()
		f.setImage("v2")
		f.eventuallyComplete()
		Expect(f.podWrites().since(writes)).To(Equal("patch 3, patch status 6"))
		Expect(witness.extremes()).To(Equal("most 3, least available 2"))
		f.expectSamePods(before, 1)
		for _, pod := range f.pods() {
			Expect(pod.Spec.Containers[0].Image).To(Equal("example.com/app:v2"))
			Expect(inplace.GateOf(&pod).Passable()).To(BeTrue())
		}
		Consistently(func() string { return f.podWrites().since(writes) }).Should(Equal("patch 3, patch status 6"))
	})

	It("metadata costs one write a pod, and the pod stays ready", func() {
		f.create()
		before := f.snapshot()
		witness := f.watch(3)
		Eventually(witness.extremes).Should(Equal("most 3, least available 3"))
		writes := f.podWrites()
		f.edit(func(set *v1beta1.RollSet) { set.Spec.Template.Labels["tier"] = "front" })
		f.eventuallyComplete()
		Expect(f.podWrites().since(writes)).To(Equal("patch 3"))
		Expect(witness.extremes()).To(Equal("most 3, least available 3"))
		f.expectSamePods(before, 0)
		for _, pod := range f.pods() {
			Expect(pod.Labels).To(HaveKeyWithValue("tier", "front"))
		}
		f.edit(func(set *v1beta1.RollSet) { delete(set.Spec.Template.Labels, "tier") })
		f.eventuallyComplete()
		for _, pod := range f.pods() {
			Expect(pod.Labels).NotTo(HaveKey("tier"))
		}
	})

	It("resources cost two writes a pod, and the pod stays ready", func() {
		setCPU(f.set, "100m")
		f.create()
		before := f.snapshot()
		witness := f.watch(3)
		Eventually(witness.extremes).Should(Equal("most 3, least available 3"))
		writes := f.podWrites()
		f.edit(func(set *v1beta1.RollSet) { setCPU(set, "200m") })
		f.eventuallyComplete()
		Expect(f.podWrites().since(writes)).To(Equal("patch 3, patch resize 3"))
		Expect(witness.extremes()).To(Equal("most 3, least available 3"))
		f.expectSamePods(before, 0)
	})

	It("an image and resources cost four writes a pod", func() {
		setCPU(f.set, "100m")
		f.create()
		before := f.snapshot()
		writes := f.podWrites()
		f.edit(func(set *v1beta1.RollSet) {
			setCPU(set, "200m")
			set.Spec.Template.Spec.Containers[0].Image = "example.com/app:v2"
		})
		f.eventuallyComplete()
		Expect(f.podWrites().since(writes)).To(Equal("patch 3, patch resize 3, patch status 6"))
		f.expectSamePods(before, 1)
	})

	It("a field that cannot change in place recreates the pods, and events name it", func() {
		f.create()
		before := f.snapshot()
		f.edit(func(set *v1beta1.RollSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "B"}}
		})
		f.eventuallyComplete()
		for uid := range f.snapshot() {
			Expect(before).NotTo(HaveKey(uid))
		}
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(shared.client.List(f, list, client.InNamespace(f.namespace))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(And(
				HaveField("Reason", podcontrol.SuccessfulDelete), HaveField("Note", ContainSubstring("spec.containers[app].env: added")))))
		}).Should(Succeed())
	})

	It("a gate that another client keeps changing costs a bounded number of writes", func() {
		f.create()
		writes, begin := f.podWrites(), time.Now()
		for range 50 {
			for _, pod := range f.pods() {
				f.turnGate(&pod, corev1.ConditionFalse)
			}
			time.Sleep(20 * time.Millisecond)
		}
		perPod := int(time.Since(begin).Seconds()) + 2
		Expect(f.podWrites()["patch status"] - writes["patch status"]).To(BeNumerically("<=", 3*perPod))
		f.eventuallyComplete()
	})
})

// snapshot is how often the container of each pod has restarted, by the pod's UID.
func (f *fixture) snapshot() map[string]int32 {
	GinkgoHelper()
	restarts := map[string]int32{}
	for _, pod := range f.pods() {
		restarts[string(pod.UID)] = pod.Status.ContainerStatuses[0].RestartCount
	}
	return restarts
}

// expectSamePods expects the pods of a snapshot, their containers restarted as often since as given.
func (f *fixture) expectSamePods(before map[string]int32, restarts int32) {
	GinkgoHelper()
	want := map[string]int32{}
	for uid, n := range before {
		want[uid] = n + restarts
	}
	Expect(f.snapshot()).To(Equal(want))
}

// writes counts what the manager wrote to pods.
type writes map[string]int

// podWrites are the manager's writes to pods so far.
func (f *fixture) podWrites() writes {
	all := writes{}
	for verb, n := range shared.faults.counts(f.namespace) {
		if strings.HasPrefix(verb, "patch") {
			all[verb] = n
		}
	}
	return all
}

// since returns the writes since then, by verb.
func (w writes) since(before writes) string {
	var parts []string
	for _, verb := range slices.Sorted(maps.Keys(w)) {
		if n := w[verb] - before[verb]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", verb, n))
		}
	}
	return strings.Join(parts, ", ")
}

// turnGate writes the condition of a pod's gate, as no client but the controller should.
func (f *fixture) turnGate(pod *corev1.Pod, status corev1.ConditionStatus) {
	GinkgoHelper()
	body := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q}]}}`, v1beta1.InPlaceUpdateReady, status)
	Expect(shared.client.Status().Patch(f, pod, client.RawPatch("application/strategic-merge-patch+json", []byte(body)))).To(Succeed())
}

func setCPU(set *v1beta1.RollSet, quantity string) {
	set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
}
