// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package actors imitates the programs of a control plane that act on pods and claims: the scheduler, and the controllers that
// bind, grow and protect claims.
//
// The rule: an actor observes every write of the store, and does one thing when its caller asks. The caller decides who acts next.
package actors

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/simulator/apiserver"
)

// These are the names under which the actors write.
const (
	SchedulerName = "scheduler"
	ClaimsName    = "claims"
)

// Scheduler binds pods to the node with the fewest, the pod that has waited longest first. A pod that no node takes waits until a
// change brings it back: of its claims, its requests or its gates, or a call of Retry.
type Scheduler struct {
	// Store is the API server.
	Store *apiserver.Store
	// Fit returns the nodes that take a pod, or why none does.
	Fit func(*corev1.Pod) ([]string, *Refusal)
	// Labels returns what a pod gets of the labels of its node.
	Labels func(node string) map[string]string
	// Counts reports whether a pod counts where the scheduler looks for the node with the fewest.
	Counts func(*corev1.Pod) bool

	waiting, refused []apiserver.Key
	load             map[string]int
}

// Refusal is why no node takes a pod, as the condition PodScheduled says it.
type Refusal struct{ Reason, Message string }

// Waits reports whether there is a pod to schedule.
func (s *Scheduler) Waits() bool { return len(s.waiting) > 0 }

// Load adds a pod that is there from the beginning, on its node.
func (s *Scheduler) Load(pod *corev1.Pod) { s.count(pod, 1) }

// Add adds a pod to be scheduled.
func (s *Scheduler) Add(pod apiserver.Key) { s.waiting = append(s.waiting, pod) }

// Refuse adds a pod that no node took.
func (s *Scheduler) Refuse(pod apiserver.Key) { s.refused = append(s.refused, pod) }

// Observe takes notice of a write.
func (s *Scheduler) Observe(e *apiserver.Entry) {
	switch e.Key.Kind {
	case apiserver.Claims:
		if e.Old == nil {
			s.Retry(func(pod *corev1.Pod) bool { return slices.Contains(apiserver.ClaimsOf(pod), e.Key) })
		}
	case apiserver.Pods:
		was, _ := e.Old.(*corev1.Pod)
		is, _ := e.New.(*corev1.Pod)
		if was == nil {
			s.Add(e.Key)
		}
		if e.Subresource == "resize" || ungated(was, is) {
			s.Retry(func(pod *corev1.Pod) bool { return apiserver.KeyOf(pod) == e.Key })
		}
		s.count(was, -1)
		s.count(is, 1)
	default:
	}
}

// ungated reports whether a write opens the scheduling gates of a pod.
func ungated(was, is *corev1.Pod) bool {
	return was != nil && is != nil && len(was.Spec.SchedulingGates) > 0 && len(is.Spec.SchedulingGates) == 0
}

func (s *Scheduler) count(pod *corev1.Pod, n int) {
	if pod == nil || pod.Spec.NodeName == "" || !s.Counts(pod) {
		return
	}
	if s.load == nil {
		s.load = map[string]int{}
	}
	s.load[pod.Spec.NodeName] += n
}

// Retry lets the scheduler look again at some of the pods that no node took.
func (s *Scheduler) Retry(which func(*corev1.Pod) bool) {
	s.refused = slices.DeleteFunc(s.refused, func(key apiserver.Key) bool {
		pod, ok := s.Store.Get(key).(*corev1.Pod)
		again := ok && which(pod)
		if again {
			s.waiting = append(s.waiting, key)
		}
		return !ok || again
	})
}

// Step handles the pod that has waited longest.
func (s *Scheduler) Step() error {
	key := s.waiting[0]
	s.waiting = s.waiting[1:]
	pod, ok := s.Store.Get(key).(*corev1.Pod)
	if !ok || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return nil
	}
	pod = apiserver.Clone(pod)
	nodes, refusal := s.Fit(pod)
	if refusal != nil {
		s.Refuse(key)
		apiserver.SetPodCondition(&pod.Status, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: refusal.Reason,
			Message: refusal.Message, LastTransitionTime: s.Store.Stamp(),
		})
		_, err := s.Store.Update(apiserver.Write{Actor: SchedulerName, Subresource: "status"}, pod)
		return err
	}
	pod.Spec.NodeName = slices.MinFunc(nodes, func(a, b string) int { return cmp.Compare(s.load[a], s.load[b]) })
	for key, value := range s.Labels(pod.Spec.NodeName) {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	}
	_, err := s.Store.Update(apiserver.Write{Actor: SchedulerName, Subresource: "binding"}, pod)
	return err
}
