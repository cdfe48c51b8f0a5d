// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
)

var _ = Describe("The update strategy", func() {
	var f *fixture
	BeforeEach(func(ctx SpecContext) { f = newFixture(ctx) })

	It("OnDelete updates a pod when a user deletes it, and the status says so", func() {
		f.set.Spec.UpdateStrategy.Type = v1alpha1.OnDeleteStrategy
		f.create()
		before := names(f.pods())
		f.setImage("v2")
		f.eventuallyCondition("Progressing", metav1.ConditionTrue, "0 of 3 pods updated; waiting for web-")
		f.eventuallyCondition("Progressing", metav1.ConditionTrue, "updateStrategy OnDelete: it is updated when it is deleted")
		Consistently(func() []string { return names(f.pods()) }).Should(Equal(before))
		Expect(f.get().Status.Conditions).To(haveCondition("Ready", metav1.ConditionTrue))
		for _, name := range before {
			Expect(shared.client.Delete(f, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}})).To(Succeed())
		}
		f.eventuallyComplete()
		Expect(f.set.Status.CurrentRevision).To(Equal(f.set.Status.UpdateRevision))
	})

	It("Recreate creates no new pod before all old ones are gone", func() {
		f.set.Spec.UpdateStrategy.Type = v1alpha1.RecreateStrategy
		f.create()
		trail := f.follow()
		f.setImage("v2")
		f.eventuallyComplete()
		events := trail.since(3)
		Expect(events).To(HaveLen(6))
		Expect(events[:3]).To(HaveEach(HavePrefix("gone")))
		Expect(events[3:]).To(HaveEach(HavePrefix("new")))
	})

	DescribeTable("RollingUpdate takes the pods first that the user prefers",
		func(prefer v1alpha1.UpdatePriorityStrategy, labels []map[string]string, want []int) {
			f.set.Spec.Replicas = new(int32(4))
			rolling := &f.set.Spec.UpdateStrategy.RollingUpdate
			rolling.MaxUnavailable, rolling.PriorityStrategy = new(intstr.FromInt32(1)), &prefer
			f.create()
			pods := f.pods()
			for i := range pods {
				f.label(&pods[i], labels[i])
			}
			order := f.orderOfUpdate()
			for i, n := range want {
				Expect(order[i]).To(Equal(pods[n].Name), "the %d. of %v", i+1, order)
			}
		},
		Entry("by weight",
			v1alpha1.UpdatePriorityStrategy{WeightPriority: []v1alpha1.UpdatePriorityWeightTerm{
				{Weight: 50, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"zone": "edge"}}},
				{Weight: 20, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "spare"}}},
			}},
			[]map[string]string{{"tier": "spare"}, {}, {"zone": "edge"}, {"zone": "edge", "tier": "spare"}}, []int{3, 2, 0, 1}),
		Entry("by the number in a label, those without it last",
			v1alpha1.UpdatePriorityStrategy{OrderPriority: []v1alpha1.UpdatePriorityOrderTerm{{OrderedKey: "wave"}}},
			[]map[string]string{{"wave": "w-9"}, {"wave": "w-10"}, {}, {"wave": "w-1"}}, []int{1, 0, 3, 2}),
	)

	It("RollingUpdate spreads pods that share a label", func() {
		f.set.Spec.Replicas = new(int32(4))
		rolling := &f.set.Spec.UpdateStrategy.RollingUpdate
		rolling.MaxUnavailable = new(intstr.FromInt32(1))
		rolling.ScatterStrategy = []v1alpha1.UpdateScatterTerm{{Key: "rack", Value: "x"}}
		f.create()
		pods := f.pods()
		racked := []string{pods[0].Name, pods[1].Name}
		f.label(&pods[0], map[string]string{"rack": "x"})
		f.label(&pods[1], map[string]string{"rack": "x"})
		order := f.orderOfUpdate()
		Expect(slices.Contains(racked, order[0])).NotTo(Equal(slices.Contains(racked, order[1])), "%v go before %v", racked, order)
	})

	It("replaces pods that are named, within the budget", func() {
		f.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
		f.create()
		before := names(f.pods())
		witness := f.watch(3)
		Eventually(witness.extremes).Should(Equal("most 3, least available 3"))
		f.edit(func(set *v1alpha1.RollSet) {
			set.Spec.ScaleStrategy = &v1alpha1.ScaleStrategy{PodsToDelete: before[:2]}
		})
		Eventually(func() []string { return names(f.pods()) }).ShouldNot(ContainElements(before[0]))
		Eventually(func() []string { return names(f.pods()) }).ShouldNot(ContainElements(before[1]))
		f.eventuallyComplete()
		Expect(names(f.pods())).To(ContainElement(before[2]))
		Expect(witness.extremes()).To(Equal("most 3, least available 2"))
	})

	It("replaces a labeled pod with surge, if only surge is allowed", func() {
		rolling := &f.set.Spec.UpdateStrategy.RollingUpdate
		rolling.MaxUnavailable, rolling.MaxSurge = new(intstr.FromInt32(0)), new(intstr.FromInt32(1))
		f.create()
		pods := f.pods()
		witness := f.watch(3)
		Eventually(witness.extremes).Should(Equal("most 3, least available 3"))
		f.label(&pods[0], map[string]string{v1alpha1.SpecifiedDeleteLabel: "true"})
		Eventually(func() []string { return names(f.pods()) }).ShouldNot(ContainElement(pods[0].Name))
		f.eventuallyComplete()
		Expect(witness.extremes()).To(Equal("most 4, least available 3"))
	})
})

// label labels a pod.
func (f *fixture) label(pod *corev1.Pod, labels map[string]string) {
	GinkgoHelper()
	before := pod.DeepCopy()
	maps.Copy(pod.Labels, labels)
	Expect(shared.client.Patch(f, pod, client.MergeFrom(before))).To(Succeed())
}

// orderOfUpdate rolls the set to a new template and returns its old pods in the order in which they went.
func (f *fixture) orderOfUpdate() []string {
	GinkgoHelper()
	trail := f.follow()
	f.setImage("v2")
	f.eventuallyComplete()
	var order []string
	for _, event := range trail.since(len(f.pods())) {
		var name string
		if _, err := fmt.Sscanf(event, "gone %s", &name); err == nil {
			order = append(order, name)
		}
	}
	return order
}

// trail is the coming and going of pods in a namespace, one entry each, in the order in which the API server saw it.
type trail struct {
	mu     sync.Mutex
	events []string
}

// follow begins to watch. The pods that exist come first.
func (f *fixture) follow() *trail {
	GinkgoHelper()
	w, err := shared.client.Watch(f, &corev1.PodList{}, client.InNamespace(f.namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	t := &trail{}
	existing := len(f.pods())
	go func() {
		for event := range w.ResultChan() {
			t.see(event)
		}
	}()
	Eventually(func() []string { return t.since(0) }).Should(HaveLen(existing))
	return t
}

func (t *trail) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch event.Type {
	case watch.Added:
		t.events = append(t.events, "new "+pod.Name)
	case watch.Deleted:
		t.events = append(t.events, "gone "+pod.Name)
	case watch.Modified, watch.Bookmark, watch.Error:
	}
}

// since are the entries from the n-th on.
func (t *trail) since(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.events[n:])
}
