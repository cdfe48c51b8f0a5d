// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// fixture is a namespace with a set in it.
type fixture struct {
	context.Context //nolint:containedctx // the fixture ends with its spec

	namespace string
	set       *v1beta1.RollSet
}

// newFixture makes a namespace and a set that is not created yet: three pods with random names.
func newFixture(ctx SpecContext) *fixture {
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // longer than the node that makes the fixture
	DeferCleanup(stop)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(shared.client.Create(ctx, namespace)).To(Succeed())
	labels := map[string]string{"app": "web"}
	return &fixture{
		Context:   running,
		namespace: namespace.Name,
		set: &v1beta1.RollSet{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace.Name},
			Spec: v1beta1.RollSetSpec{
				Replicas: new(int32(3)),
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						Containers:                    []corev1.Container{{Name: "app", Image: "example.com/app:v1"}},
						TerminationGracePeriodSeconds: new(int64(1)),
					},
				},
			},
		},
	}
}

// create creates the set and waits until it is complete.
func (f *fixture) create() {
	GinkgoHelper()
	Expect(shared.client.Create(f, f.set)).To(Succeed())
	f.eventuallyComplete()
}

// edit changes the set.
func (f *fixture) edit(change func(*v1beta1.RollSet)) {
	GinkgoHelper()
	f.get()
	before := f.set.DeepCopy()
	change(f.set)
	Expect(shared.client.Patch(f, f.set, client.MergeFrom(before))).To(Succeed())
}

func (f *fixture) setImage(image string) {
	GinkgoHelper()
	f.edit(func(set *v1beta1.RollSet) { set.Spec.Template.Spec.Containers[0].Image = "example.com/app:" + image })
}

// get reads the set.
func (f *fixture) get() *v1beta1.RollSet {
	GinkgoHelper()
	Expect(shared.client.Get(f, client.ObjectKeyFromObject(f.set), f.set)).To(Succeed())
	return f.set
}

// eventuallyComplete waits until all is as it should be: the set says so of its newest spec, and the pods bear it out.
func (f *fixture) eventuallyComplete() {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		set := f.get()
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		g.Expect(set.Status.Conditions).To(haveCondition("Ready", metav1.ConditionTrue))
		g.Expect(f.pods()).To(HaveLen(int(*set.Spec.Replicas)))
		for _, pod := range f.pods() {
			g.Expect(pod.Labels).To(HaveKeyWithValue(v1beta1.RevisionLabel, set.Status.UpdateRevision))
		}
	}).Should(Succeed())
}

// pods are the pods that the set controls, sorted by name.
func (f *fixture) pods() []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(shared.client.List(f, list, client.InNamespace(f.namespace))).To(Succeed())
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, f.set) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// warnings are the events of type Warning, as "reason: note".
func (f *fixture) warnings() (all []string) {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(shared.client.List(f, list, client.InNamespace(f.namespace))).To(Succeed())
	for i := range list.Items {
		if e := &list.Items[i]; e.Type == corev1.EventTypeWarning {
			all = append(all, e.Reason+": "+e.Note)
		}
	}
	return all
}

// names are the names of pods.
func names(pods []corev1.Pod) []string {
	all := make([]string, len(pods))
	for i := range pods {
		all[i] = pods[i].Name
	}
	return all
}

// revisions are the set's revisions, oldest first.
func (f *fixture) revisions() []appsv1.ControllerRevision {
	GinkgoHelper()
	list := &appsv1.ControllerRevisionList{}
	Expect(shared.client.List(f, list, client.InNamespace(f.namespace))).To(Succeed())
	revisions := slices.DeleteFunc(list.Items, func(r appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(&r, f.set) })
	slices.SortFunc(revisions, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return revisions
}

// requests counts what the manager asked of the API server in this namespace.
func (f *fixture) requests(verb string) int { return shared.faults.counts(f.namespace)[verb] }

// condition waits for a condition.
func (f *fixture) eventuallyCondition(name string, status metav1.ConditionStatus, message string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		c := meta.FindStatusCondition(f.get().Status.Conditions, name)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Status).To(Equal(status), c.Message)
		g.Expect(c.Message).To(ContainSubstring(message))
	}).Should(Succeed())
}

// haveCondition matches conditions that include one with the name and the status.
func haveCondition(name string, status metav1.ConditionStatus) OmegaMatcher {
	return ContainElement(And(HaveField("Type", name), HaveField("Status", status)))
}

// eyewitness watches the pods of a namespace and remembers the extremes.
type eyewitness struct {
	mu           sync.Mutex
	pods         map[string]*corev1.Pod
	maxLive      int
	minAvailable int
}

// watch begins to watch. The least number of available pods counts from the first moment at which there are enough.
func (f *fixture) watch(enough int) *eyewitness {
	GinkgoHelper()
	w, err := shared.client.Watch(f, &corev1.PodList{}, client.InNamespace(f.namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
	e := &eyewitness{pods: map[string]*corev1.Pod{}, minAvailable: -1}
	go func() {
		for event := range w.ResultChan() {
			e.see(event, enough)
		}
	}()
	return e
}

func (e *eyewitness) see(event watch.Event, enough int) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pods[pod.Name] = pod
	if event.Type == watch.Deleted {
		delete(e.pods, pod.Name)
	}
	live, available := 0, 0
	for _, p := range e.pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		live++
		if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			available++
		}
	}
	e.maxLive = max(e.maxLive, live)
	if e.minAvailable < 0 && available >= enough {
		e.minAvailable = available
	}
	e.minAvailable = min(e.minAvailable, available)
}

// extremes are the most pods that lived, and the fewest that were available since there were enough.
func (e *eyewitness) extremes() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprintf("most %d, least available %d", e.maxLive, e.minAvailable)
}
