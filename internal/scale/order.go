// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// heldByOrder holds a place while a pod before it is not available.
func heldByOrder(o *snapshot.Set, place desired.Place, p *action.Plan) bool {
	before := firstUnavailableBelow(o, place.Ordinal)
	if before == nil {
		return false
	}
	p.Hold(action.HeldByOrder, o.PodName(place.ID), "podManagementPolicy OrderedReady: %s is not available", before.Pod.Name)
	return true
}

// firstUnavailableBelow is the lowest pod in use below an ordinal that is not available; nil if there is none. A place
// without any pod is not its concern: places are filled from the lowest.
func firstUnavailableBelow(o *snapshot.Set, ordinal int) *snapshot.Replica {
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if r.Pod == nil || r.Ordinal >= ordinal || r.Available {
			continue
		}
		if _, used := o.InUse(r.Ordinal); used {
			return r
		}
	}
	return nil
}

// removeOutside deletes the pods whose ordinal is not in use: all of them, or from the highest, each gone before the
// next. Nobody misses what is not available, or what Recreate wants gone. As long as the others are no more than
// spec.replicas none of them is too many, only misplaced, and one goes only where the budget of updates allows it.
func removeOutside(o *snapshot.Set, w *desired.State, p *action.Plan) {
	victims := w.Outside
	if o.OrderedReady() {
		victims = nextOutside(o, w, p)
	}
	budget := o.Budget(o.Limits.MinAvailable())
	tooMany := o.Live() - o.Limits.Replicas
	missed := func(r *snapshot.Replica) bool { return r.Available && !desired.IsOld(o, r) }
	for _, r := range victims {
		if !missed(r) {
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
			p.Hold(action.HeldByBudget, r.Pod.Name, "its ordinal is not in use any more; it goes when enough other pods are available")
			continue
		}
		p.Add(action.Delete{Pod: r.Pod, Cause: action.ScaleDown, Reason: "its ordinal is not in use"})
	}
}

// nextOutside is the pod to go in an OrderedReady set: a broken one if there is one, else the highest, once every pod that
// is to stay below it is available; none before the one deleted last is gone. Where the highest cannot go yet, or is only
// misplaced, what Recreate wants gone does not wait for it: nothing new comes before.
func nextOutside(o *snapshot.Set, w *desired.State, p *action.Plan) []*snapshot.Replica {
	victim := w.Outside[0]
	below := firstUnavailableBelow(o, victim.Ordinal)
	inTurn := below == nil && o.Live() > o.Limits.Replicas
	for _, r := range w.Outside {
		if r.Broken() || !inTurn && desired.IsOld(o, r) {
			victim, below = r, nil
			break
		}
	}
	if going := terminatingOutside(o); going != nil {
		p.Hold(action.HeldByOrder, victim.Pod.Name, "podManagementPolicy OrderedReady: %s is still terminating", going.Pod.Name)
		return nil
	}
	if below != nil {
		p.Hold(action.HeldByOrder, victim.Pod.Name, "podManagementPolicy OrderedReady: %s is not available", below.Pod.Name)
		return nil
	}
	return []*snapshot.Replica{victim}
}

// terminatingOutside is a pod that was scaled down and is not yet gone; nil if there is none.
func terminatingOutside(o *snapshot.Set) *snapshot.Replica {
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if !r.Terminating {
			continue
		}
		if _, used := o.InUse(r.Ordinal); !used {
			return r
		}
	}
	return nil
}
