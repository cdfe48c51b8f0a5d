// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"slices"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// heldByOrder holds a place while a pod before it is not available.
func heldByOrder(snap *snapshot.Set, place desired.Place, p *action.Plan) bool {
	before := firstUnavailableBelow(snap, place.Ordinal)
	if before == nil && place.Surge {
		before = firstUnavailableSurgeBelow(snap, place.Ordinal)
	}
	if before == nil {
		return false
	}
	p.Hold(action.HeldByOrder, snap.PodName(place.ID), "podManagementPolicy OrderedReady: %s", notAvailable(snap, before))
	return true
}

// notAvailable says that a pod is not available, and why.
func notAvailable(snap *snapshot.Set, r *snapshot.Replica) string {
	why := podstate.Why(r.Pod)
	switch {
	case snap.Doubts(r):
		why = ": its deletion was not answered"
	case why != "":
		why = ": " + why
	}
	return r.Pod.Name + " is not available" + why
}

// firstUnavailableBelow returns the lowest unavailable pod in use below an ordinal; nil if there is none. One that serves although its
// update is not known to be done keeps no pod back: surge may have to come before it can be recreated. One that may be deleted already
// counts as unavailable.
func firstUnavailableBelow(snap *snapshot.Set, ordinal int) (first *snapshot.Replica) {
	for r := range snap.Unsteady() {
		if r.Pod != nil && r.Ordinal < ordinal && !r.Available && !r.ServesUnproven() && !snap.Condemned(r) {
			first = r
			break
		}
	}
	for _, r := range snap.Doubted() {
		if r.Ordinal < ordinal && !snap.Condemned(r) && (first == nil || r.Ordinal < first.Ordinal) {
			return r
		}
	}
	return first
}

// firstUnavailableSurgeBelow returns the lowest unavailable surge pod below an ordinal; nil if there is none.
func firstUnavailableSurgeBelow(snap *snapshot.Set, ordinal int) *snapshot.Replica {
	for r := range snap.Unsteady() {
		if r.Pod != nil && r.Surge && r.Ordinal < ordinal && !r.Available {
			return r
		}
	}
	return nil
}

// lackBelow returns what keeps the pod of an ordinal from being scaled down: the lowest place in use below it whose pod is not
// available or does not exist; empty if there is none. A place that a quota keeps empty keeps no pod: one that goes makes room.
func lackBelow(snap *snapshot.Set, w *desired.State, ordinal int) string {
	below := firstUnavailableBelow(snap, ordinal)
	full := snap.Refusals[attempt.AnyCreate()].Definite
	if len(w.Places) > 0 && !full {
		if place := w.Places[0]; !place.Surge && place.Ordinal < ordinal && (below == nil || place.Ordinal < below.Ordinal) {
			return snap.PodName(place.ID) + " does not exist"
		}
	}
	if below == nil {
		return ""
	}
	return notAvailable(snap, below)
}

// removeCondemned deletes the pods whose ordinal is not in use: all at once, or from the highest, each after the last one is
// gone. Pods that are unavailable, or that Recreate wants gone, do not reduce availability. While the set has no more than
// spec.replicas pods, none is surplus but only misplaced, and one is deleted only if the update budget allows it. Surge pods go when
// they are no longer needed, and count for nothing here.
func removeCondemned(snap *snapshot.Set, w *desired.State, p *action.Plan) {
	budget, tooMany := withoutSurge(snap, w)
	victims := w.Going
	if snap.OrderedReady() {
		victims = nextCondemned(snap, w, tooMany <= 0, p)
	}
	missed := func(r *snapshot.Replica) bool { return r.Available && !r.Surge && !desired.IsOld(snap, r) }
	for _, r := range victims {
		if !missed(r) && !r.Surge {
			tooMany--
		}
	}
	for _, r := range victims {
		switch {
		case !missed(r):
		case tooMany > 0 || budget.Spare():
			tooMany--
			budget.Spend(r)
		default:
			p.Hold(action.HeldByBudget, r.Pod.Name, "its ordinal is out of range; it is deleted when enough other pods are available")
			continue
		}
		p.Add(action.Delete{Pod: r.Pod, Cause: action.ScaleDown, Reason: whyCondemned(r)})
	}
}

func whyCondemned(r *snapshot.Replica) string {
	if r.Surge {
		return noMoreSurge
	}
	return "its ordinal is not in use"
}

// withoutSurge returns the budget of a set, and how many pods it has too many, as if it had no surge.
func withoutSurge(snap *snapshot.Set, w *desired.State) (budget snapshot.Budget, tooMany int) {
	budget, tooMany = snap.Budget(snap.Limits.MinAvailable()), snap.Active()-snap.Limits.Replicas
	for r := range snap.Unsteady() {
		if !r.Surge || !r.Active() {
			continue
		}
		tooMany--
		if r.Available {
			budget.Available--
		}
	}
	for _, r := range snap.Doubted() {
		if !r.Surge && !w.Goes(r) {
			budget.Spend(r)
		}
	}
	return budget, tooMany
}

// nextCondemned returns the pod to delete in an OrderedReady set: a broken one if there is one, otherwise the highest. It
// waits until the previous one is gone and every place below has an available pod. If the pods are only misplaced, one that is
// out of service goes before it. Pods that Recreate wants gone do not wait for the highest when it must wait or is only misplaced,
// because no new pod is created before they are gone.
func nextCondemned(snap *snapshot.Set, w *desired.State, misplaced bool, p *action.Plan) []*snapshot.Replica {
	victim := w.Going[0]
	lack := lackBelow(snap, w, victim.Ordinal)
	goesFirst := func(r *snapshot.Replica) bool {
		switch {
		case r.Broken():
			return true
		case desired.IsOld(snap, r):
			return misplaced || lack != ""
		default:
			return misplaced && lack == "" && r.OutOfService()
		}
	}
	if i := slices.IndexFunc(w.Going, goesFirst); i >= 0 {
		victim, lack = w.Going[i], ""
	}
	if going := terminatingCondemned(snap); going != nil {
		p.Hold(action.HeldByOrder, victim.Pod.Name, "podManagementPolicy OrderedReady: %s is still terminating", going.Pod.Name)
		return nil
	}
	if lack != "" {
		p.Hold(action.HeldByOrder, victim.Pod.Name, "podManagementPolicy OrderedReady: %s", lack)
		return nil
	}
	return []*snapshot.Replica{victim}
}

// terminatingCondemned returns a pod that was scaled down and is not yet gone; nil if there is none.
func terminatingCondemned(snap *snapshot.Set) *snapshot.Replica {
	for r := range snap.Unsteady() {
		if r.Terminating && snap.Condemned(r) {
			return r
		}
	}
	return nil
}
