// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/attempt"
)

// LeavesAside reports whether a write must not be retried yet, because it or its verb was refused for the whole set.
func (s *Set) LeavesAside(k attempt.Key) bool {
	r := s.Refusal(k)
	return r.Message != "" && r.Retry > 0
}

// Refused reports whether a write was refused a moment ago, and is not retried yet. A write with an unknown result was not: it
// may have happened.
func (s *Set) Refused(k attempt.Key) bool { return s.LeavesAside(k) && !s.Refusal(k).Unsettled }

// Refusal returns the refusal of a write: its own or, if there is none, that of its verb.
func (s *Set) Refusal(k attempt.Key) Refusal {
	if r, ok := s.Refusals[k]; ok && r.Retry > 0 {
		return r
	}
	if r, ok := s.Refusals[attempt.Any(k.Verb)]; ok {
		return r
	}
	return s.Refusals[k]
}

// RefusesCreate reports whether the API server refused the pod of an identity, or any pod of the set, when last asked. Such
// a pod is not on its way. After a conflict, or while the server fails, it is.
func (s *Set) RefusesCreate(id string) bool {
	return s.Refusals[attempt.AnyCreate()].Definite || s.Refusals[attempt.Key{Verb: attempt.Creating, Object: id}].Definite
}

// MayBeDeleted reports whether it is not known what came of the last delete of a pod.
func (s *Set) MayBeDeleted(pod *corev1.Pod) bool {
	return len(s.Refusals) > 0 && s.Refusals[attempt.OfPod(attempt.Deleting, pod)].Unsettled
}

// Unmovable returns the first refused write among those that move a pod to another revision; false if there is none. A write
// with an unknown result does not count: the pod may be on its way out, and no other pod may be disturbed in its place.
func (s *Set) Unmovable(pod *corev1.Pod) (k attempt.Key, ok bool) {
	return s.firstOfMove(pod, s.Refused)
}

// WasRefused reports whether a write that moves a pod to another revision was refused when last tried, even if it may be tried
// again now.
func (s *Set) WasRefused(pod *corev1.Pod) bool {
	_, refused := s.firstOfMove(pod, func(k attempt.Key) bool {
		r := s.Refusals[k]
		return r.Message != "" && !r.Unsettled && !r.Overtaken
	})
	return refused
}

// firstOfMove returns the first write for which a condition holds, among those that move a pod to another revision.
func (s *Set) firstOfMove(pod *corev1.Pod, holds func(attempt.Key) bool) (k attempt.Key, ok bool) {
	if len(s.Refusals) == 0 {
		return k, false
	}
	for _, verb := range []attempt.Verb{attempt.Deleting, attempt.Relabeling, attempt.Closing, attempt.Updating, attempt.SettingState} {
		if k = attempt.OfPod(verb, pod); holds(k) {
			return k, true
		}
	}
	return k, false
}
