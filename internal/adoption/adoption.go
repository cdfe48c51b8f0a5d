// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package adoption decides which pods belong to a set. It also recognizes pods that a deleted StatefulSet, ReplicaSet or
// CloneSet left behind.
//
// The rule: a set adopts pods that its selector matches and that have no controller. It releases pods that its selector no
// longer matches. It leaves aside a pod that the API server does not let it adopt or release. An adopted pod that equals
// what the set's template would give gets the label of the update revision and keeps running. The API server decides what
// the template would give, by a dry run, because its defaults and admission plugins change pods. A pod that differs is
// updated like any outdated pod, but not before it is known to differ.
package adoption

import (
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Own plans which pods without a controller to adopt, and which of the set's own pods to release.
func Own(o *snapshot.Set) action.Plan {
	p := action.Plan{EveryHold: o.EveryHold}
	for _, pod := range o.Leaving {
		p.Add(action.Release{Pod: pod})
	}
	for _, pod := range o.Orphans {
		if Adoptable(o, pod) {
			p.Add(action.Adopt{Pod: pod})
		}
	}
	return p
}

// Adoptable reports whether the set may adopt a pod that its selector matches. The pod must be able to take the place of one
// of the set's own.
func Adoptable(o *snapshot.Set, pod *corev1.Pod) bool {
	if podstate.Terminating(pod) {
		return false
	}
	if o.Ordinal() {
		_, canonical := identity.ParseOrdinal(o.Name, pod.Name)
		return canonical
	}
	return !podstate.Finished(pod) // a finished pod leaves only its name, and names are not scarce
}

// Recognize plans which pods to label with the update revision, or asks the API server what such a pod would look like. If
// it plans nothing, every pod has the right label or differs from the template.
func Recognize(o *snapshot.Set) action.Plan {
	var p action.Plan
	answer, asked := o.Preflights[o.Update.Name]
	for r := range o.Unsteady() {
		if !r.Active() || o.Known[r.Revision].Template != nil {
			continue
		}
		switch {
		case !asked, answer.Pod == nil && answer.Retry <= 0: // both expire
			p.Add(action.Preflight{Revision: o.Update.Name})
			return p
		case answer.Pod != nil && o.Difference(r, answer.Pod) == "":
			p.Add(action.Relabel{Pod: r.Pod, Revision: o.Update.Name})
		}
	}
	return p
}
