// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
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
		switch {
		case known && answer.Unclear() && o.Known[m.Replica.Revision] == nil:
			p.Hold(action.HeldByPreflight, m.Replica.Pod.Name, "a full quota keeps the API server from showing whether the pod differs from revision %s", m.To)
			p.Wake(answer.Retry)
		case accepted[m.To]:
			return false
		case known && answer.Refusal == "":
			return false
		case known && answer.Retry > 0:
			p.Hold(action.HeldByPreflight, m.Replica.Pod.Name, "the API server refuses pods of revision %s: %s", m.To, answer.Refusal)
			p.Wake(answer.Retry)
		default:
			p.Hold(action.HeldByPreflight, m.Replica.Pod.Name, "asking the API server whether it accepts pods of revision %s", m.To)
			if !asked[m.To] {
				asked[m.To] = true
				p.Add(action.Preflight{Revision: m.To})
			}
		}
		return true
	})
}

// acceptedRevisions are the revisions of which there are pods: the API server has accepted them before.
func acceptedRevisions(o *observed.Set) map[string]bool {
	accepted := map[string]bool{}
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Pod != nil {
			accepted[r.Revision] = true
		}
	}
	return accepted
}
