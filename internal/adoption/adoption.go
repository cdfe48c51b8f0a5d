// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package adoption decides which pods belong to a set. It also recognizes pods that a deleted StatefulSet, ReplicaSet or
// CloneSet left behind.
//
// The rule: a set adopts pods that its selector matches and that have no controller. It releases pods that its selector no
// longer matches. It leaves aside a pod that the API server does not let it adopt or release. An adopted pod that equals
// what the set's template would give gets the label of its revision and keeps running. So does a pod that has lost that label.
// The API server decides what the template would give, by a dry run, because its defaults and admission plugins change pods. A
// pod that differs is updated like any outdated pod, but not before it is known to differ, or its user changes the template.
package adoption

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Own plans which pods without a controller to adopt, and which of the set's own pods to release.
func Own(snap *snapshot.Set) action.Plan {
	p := action.Plan{EveryHold: snap.EveryHold}
	for _, pod := range snap.Leaving {
		p.Add(action.Release{Pod: pod})
	}
	for _, pod := range snap.Orphans {
		if Adoptable(snap, pod) {
			p.Add(action.Adopt{Pod: pod})
		}
	}
	return p
}

// Adoptable reports whether the set may adopt a pod that its selector matches. The pod must be able to take the place of one
// of the set's own.
func Adoptable(snap *snapshot.Set, pod *corev1.Pod) bool {
	if podstate.Terminating(pod) {
		return false
	}
	if snap.Ordinal() {
		_, canonical := identity.ParseOrdinal(snap.Name, pod.Name)
		return canonical
	}
	return !podstate.Finished(pod) // a finished pod leaves only its name, and names are not scarce
}

// Recognize plans which pods to label with the update revision or the current one, or asks the API server what such a pod would
// look like. If it plans nothing, every pod has the right label or differs from both templates. The last answer stays in force while the
// server is asked again.
func Recognize(snap *snapshot.Set) action.Plan {
	var p action.Plan
	revisions := recognizable(snap)
	for r := range snap.Unsteady() {
		if !r.Active() || snap.Known[r.Revision].Template != nil {
			continue
		}
		for _, revision := range revisions {
			if !ask(snap, revision.Name, &p) {
				return p
			}
			if isOf(snap, r, revision, snap.Preflights[revision.Name]) {
				p.Add(action.Relabel{Pod: r.Pod, Revision: revision.Name})
				break
			}
		}
	}
	return p
}

// ask asks the API server about a revision unless its last answer still counts, and reports whether there is any.
func ask(snap *snapshot.Set, revision string, p *action.Plan) bool {
	answer, asked := snap.Preflights[revision]
	again := action.Action(action.Preflight{Revision: revision})
	if answer.Pod == nil && answer.Retry <= 0 && !slices.Contains(p.Actions, again) {
		p.Add(again)
	}
	return asked
}

// recognizable returns the revisions that pods may be of. A pod may have more labels and annotations than its template, so the
// template that asks for more comes first.
func recognizable(snap *snapshot.Set) []snapshot.Revision {
	asks := func(r snapshot.Revision) int { return len(r.Template.Labels) + len(r.Template.Annotations) }
	switch {
	case !snap.Rolling() || snap.Current.Template == nil:
		return []snapshot.Revision{snap.Update}
	case asks(snap.Current) > asks(snap.Update):
		return []snapshot.Revision{snap.Current, snap.Update}
	default:
		return []snapshot.Revision{snap.Update, snap.Current}
	}
}

// isOf reports whether a pod equals a pod of the template of a revision, as the API server showed it. A server that has nothing against
// such pods but shows none, because of a full quota, leaves the template to compare with.
func isOf(snap *snapshot.Set, r *snapshot.Replica, revision snapshot.Revision, answer snapshot.Preflight) bool {
	switch {
	case answer.Pod != nil:
		return snap.Difference(r, revision, answer.Pod) == ""
	case answer.Unclear():
		return snap.DifferenceAsWritten(r, revision) == ""
	default:
		return false
	}
}
