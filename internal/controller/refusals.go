// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/status"
)

// refusedWrite returns what keeps the plan from being made, or what the API server refuses of it. A conflict is not a refusal.
func (s *step) refusedWrite() *status.Failure {
	if s.failure != nil && !apierrors.IsConflict(s.failure) {
		return &status.Failure{Reason: podcontrol.FailedUpdate, Message: s.failure.Error()}
	}
	return s.refused()
}

// shownRefusals is how many refused writes a condition names.
const shownRefusals = 5

// refused returns what the API server refuses of what is wanted, the most telling first; nil if there is nothing. A resize
// that it refuses is none: there are other ways, and the plan says which. A disruption budget has a condition of its own.
func (s *step) refused() *status.Failure {
	var messages []string
	reason := ""
	for _, k := range s.due() {
		f, counts := s.writes.Failure(k)
		if !counts || f.Message == "" || f.Overtaken || k.Verb == attempt.Resizing && f.Refused && !f.ByRule || attempt.OfBudget(k.Verb) || slices.Contains(messages, f.Message) {
			continue
		}
		if messages = append(messages, f.Message); reason == "" {
			reason, _ = reasonOf(k.Verb)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	text := strings.Join(messages[:min(len(messages), shownRefusals)], "; ")
	if more := len(messages) - shownRefusals; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return &status.Failure{Reason: reason, Message: text}
}

// due are the keys of all that is wanted, whether it is tried now or not, in a fixed order.
func (s *step) due() []attempt.Key {
	var due []attempt.Key
	for _, k := range s.plan.Aside {
		due = append(due, k, attempt.Any(k.Verb))
	}
	for _, a := range s.plan.Actions {
		due = append(due, action.KeyOf(a), attempt.Any(action.KeyOf(a).Verb))
	}
	due = append(due, s.revisions.Due...)
	slices.SortFunc(due, func(a, b attempt.Key) int {
		_, first := reasonOf(a.Verb)
		_, second := reasonOf(b.Verb)
		return cmp.Or(cmp.Compare(first, second), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Object, b.Object))
	})
	return slices.Compact(due)
}

// reasonOf returns the reason of a refused write, and how telling it is: the lower, the more.
func reasonOf(verb attempt.Verb) (reason string, rank int) {
	switch verb {
	case attempt.Creating, backoff.CreatingRevision:
		return podcontrol.FailedCreate, 0
	case attempt.Deleting:
		return podcontrol.FailedDelete, 1
	default:
		return podcontrol.FailedUpdate, 2
	}
}
