// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"fmt"
	"slices"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// vetted returns the candidates that may move: the API server is known to accept their new revision, and refused no write of
// theirs a moment ago. The others are held, and the server is asked. Its last answer counts more than pods that it accepted
// before. While it fails, a pod of unknown origin is held: it may be what a policy made of a pod of that revision, and its successor
// would be the same. A missing answer is no reason to put a pod back into service that is out of it for the move. The slice is reused.
func (v *mover) vetted(candidates []desired.Candidate) []desired.Candidate {
	snap, p := v.snap, v.plan
	accepted := acceptedRevisions(snap)
	asked := map[string]bool{}
	return slices.DeleteFunc(candidates, func(m desired.Candidate) bool {
		unknown := snap.Known[m.Replica.Revision].Template == nil
		if k, unmovable := snap.Unmovable(m.Replica.Pod); unmovable {
			p.LeaveAside(snap, k, m.Replica.Pod.Name)
			return true
		}
		answer, known := snap.Preflights[m.To]
		var why string
		switch {
		case known && answer.Unclear() && !snap.Rolling() && unknown: // an edit is there to replace it
			why = "a full quota, a taken name, or a webhook with side effects keeps the API server from showing whether the pod differs from revision " + m.To
		case known && answer.Refusal == "", accepted[m.To] && !answer.Refuses() && (!unknown || !answer.Failed):
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
		if !known {
			v.moving[m.Replica.Pod] = true
		}
		return true
	})
}

// askAgain asks the API server about an update revision that it refused, although no pod is to be moved to it for now,
// because new pods get that revision once it is accepted.
func (v *mover) askAgain() {
	snap := v.snap
	if !snap.ComesBackAtCurrent() {
		return
	}
	again := action.Preflight{Revision: snap.Update.Name}
	asks := func(a action.Action) bool { return a == action.Action(again) }
	if retry := snap.Preflights[snap.Update.Name].Retry; retry > 0 {
		v.plan.Wake(retry)
	} else if !slices.ContainsFunc(v.plan.Actions, asks) {
		v.plan.Add(again)
	}
}

// unvetted returns why no pod is moved to a revision. During another preflight the last answer stays in force, so that the message
// does not change.
func unvetted(revision string, answer snapshot.Preflight) string {
	switch {
	case answer.Failed:
		return fmt.Sprintf("the API server cannot judge pods of revision %s: %s", revision, answer.Refusal)
	case answer.Refusal != "":
		return fmt.Sprintf("the API server refuses pods of revision %s: %s", revision, answer.Refusal)
	default:
		return "asking the API server whether it accepts pods of revision " + revision
	}
}

// acceptedRevisions returns revisions that already have pods; the API server has accepted those templates.
func acceptedRevisions(snap *snapshot.Set) map[string]bool {
	accepted := map[string]bool{}
	last := ""
	for i := range snap.Replicas {
		if r := &snap.Replicas[i]; r.Pod != nil && (len(accepted) == 0 || r.Revision != last) { // most have the same
			accepted[r.Revision] = true
			last = r.Revision
		}
	}
	return accepted
}
