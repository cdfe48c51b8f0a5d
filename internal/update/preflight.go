// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"fmt"
	"slices"

	"rollset.dev/rollset/internal/action"
	"rollset.dev/rollset/internal/observed"
	"rollset.dev/rollset/internal/wanted"
)

// vetted returns the candidates that may go: those whose new revision the API server is known to accept. Of the others
// none is touched; they are held, and the server is asked.
func vetted(o *observed.Set, candidates []wanted.Move, p *action.Plan) []wanted.Move {
	accepted := acceptedRevisions(o)
	asked := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(candidates), func(m wanted.Move) bool {
		answer, known := o.Preflights[m.To]
		var why string
		switch {
		case known && answer.Unclear() && o.Known[m.Replica.Revision] == nil:
			why = "a full quota, a taken name, or a webhook with side effects keeps the API server from showing whether the pod differs from revision " + m.To
		case accepted[m.To], known && answer.Refusal == "":
			return false
		default:
			why = unvetted(m.To, answer)
		}
		p.Hold(action.HeldByPreflight, m.Replica.Pod.Name, "%s", why)
		if answer.Retry > 0 {
			p.Wake(answer.Retry)
		} else if !asked[m.To] {
			asked[m.To] = true
			p.Add(action.Preflight{Revision: m.To})
		}
		return true
	})
}

// unvetted says why no pod is moved to a revision. While the server is asked again its last answer stands, so that the
// sentence stays the same.
func unvetted(revision string, answer observed.Preflight) string {
	switch {
	case answer.Failed:
		return fmt.Sprintf("the API server cannot judge pods of revision %s: %s", revision, answer.Refusal)
	case answer.Refusal != "":
		return fmt.Sprintf("the API server refuses pods of revision %s: %s", revision, answer.Refusal)
	default:
		return "asking the API server whether it accepts pods of revision " + revision
	}
}

// acceptedRevisions are the revisions of which there are pods: the API server has accepted them before.
func acceptedRevisions(o *observed.Set) map[string]bool {
	accepted := map[string]bool{}
	last := ""
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Pod != nil && r.Revision != last { // most have the same
			accepted[r.Revision] = true
			last = r.Revision
		}
	}
	return accepted
}
