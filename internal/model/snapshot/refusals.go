// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/action"
)

// LeavesAside reports whether a write must not be retried yet, because it or its verb was refused for the whole set.
func (s *Set) LeavesAside(k action.Key) bool {
	r := s.Refusal(k)
	return r.Message != "" && r.Retry > 0
}

// Refusal returns the refusal of a write: its own or, if there is none, that of its verb.
func (s *Set) Refusal(k action.Key) Refusal {
	if r, ok := s.Refusals[k]; ok && r.Retry > 0 {
		return r
	}
	if r, ok := s.Refusals[action.Any(k.Verb)]; ok {
		return r
	}
	return s.Refusals[k]
}

// LeaveAside records in a plan that a write to a subject is due and left aside.
func (s *Set) LeaveAside(k action.Key, subject string, p *action.Plan) {
	refusal := s.Refusal(k)
	p.Wake(refusal.Retry)
	if refusal.Overtaken {
		return
	}
	if !slices.Contains(p.Aside, k) {
		p.Aside = append(p.Aside, k)
	}
	p.Hold(action.HeldByRefusal, subject, "%s", refusal.Message)
}

// RefusesCreate reports whether the API server refused the pod of an identity, or any pod of the set, when last asked. Such
// a pod is not on its way. After a conflict, or while the server fails, it is.
func (s *Set) RefusesCreate(id string) bool {
	return s.Refusals[action.AnyCreate()].Definite || s.Refusals[action.Key{Verb: action.Creating, Object: id}].Definite
}

// Unmovable returns the first refused write among those that move a pod to another revision; false if there is none. A write
// with an unknown result does not count: the pod may be on its way out, and no other pod may be disturbed in its place.
func (s *Set) Unmovable(pod *corev1.Pod) (k action.Key, ok bool) {
	return s.firstOfMove(pod, func(k action.Key) bool { return s.LeavesAside(k) && !s.Refusal(k).Unsettled })
}

// WasRefused reports whether a write that moves a pod to another revision was refused when last tried, even if it may be tried
// again now.
func (s *Set) WasRefused(pod *corev1.Pod) bool {
	_, refused := s.firstOfMove(pod, func(k action.Key) bool {
		r := s.Refusals[k]
		return r.Message != "" && !r.Unsettled && !r.Overtaken
	})
	return refused
}

// firstOfMove returns the first write for which a condition holds, among those that move a pod to another revision.
func (s *Set) firstOfMove(pod *corev1.Pod, holds func(action.Key) bool) (k action.Key, ok bool) {
	if len(s.Refusals) == 0 {
		return k, false
	}
	for _, verb := range []action.Verb{action.Deleting, action.Relabeling, action.Closing, action.Updating, action.SettingState} {
		if k = action.OfPod(verb, pod); holds(k) {
			return k, true
		}
	}
	return k, false
}
