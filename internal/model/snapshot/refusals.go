// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/action"
)

// LeavesAside reports whether a write that was refused is not to be tried yet: itself, or its verb for the whole set.
func (s *Set) LeavesAside(k action.Key) bool {
	r := s.Refusal(k)
	return r.Message != "" && r.Retry > 0
}

// Refusal returns what is known against a write: against itself or, if there is nothing, against all of its verb.
func (s *Set) Refusal(k action.Key) Refusal {
	if r, ok := s.Refusals[k]; ok && r.Retry > 0 {
		return r
	}
	if r, ok := s.Refusals[action.Any(k.Verb)]; ok {
		return r
	}
	return s.Refusals[k]
}

// LeaveAside notes in a plan that a write to a subject is due and left aside.
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

// RefusesCreate reports whether the API server would not have the pod of an identity, or any pod of the set, when it was last
// asked. It is not on its way then. After a conflict, or while the server is in trouble, it is.
func (s *Set) RefusesCreate(id string) bool {
	return s.Refusals[action.AnyCreate()].Definite || s.Refusals[action.Key{Verb: action.Creating, Object: id}].Definite
}

// Unmovable returns the first write that was refused of those that move a pod to another revision; false if there is none. A
// pod of which it is not known what became of it is none: it may be on its way out, and nothing else may be disturbed in its
// place.
func (s *Set) Unmovable(pod *corev1.Pod) (k action.Key, ok bool) {
	if len(s.Refusals) == 0 {
		return k, false
	}
	for _, verb := range []action.Verb{action.Deleting, action.Relabeling, action.Closing, action.Updating, action.SettingState} {
		if k = action.OfPod(verb, pod); s.LeavesAside(k) && !s.Refusal(k).Unsettled {
			return k, true
		}
	}
	return k, false
}
