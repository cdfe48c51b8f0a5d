// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"maps"
	"slices"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Originate records in the pods that scaling creates for a set with failure domains where the pods were that they replace.
func Originate(snap *snapshot.Set, w *desired.State, scaling *action.Plan) {
	if snap.Domains() == nil || !slices.ContainsFunc(scaling.Actions, isCreate) {
		return
	}
	d := newDomains(snap, w, w.Candidates)
	replaces := map[string]bool{}
	for _, place := range successors(snap, w) {
		replaces[place.ID] = true
	}
	surges := map[string]bool{}
	for _, place := range w.Places {
		surges[place.ID] = place.Surge
	}
	homes := origins{d}.open(len(replaces))
	for i, a := range scaling.Actions {
		created, ok := a.(action.Create)
		if !ok {
			continue
		}
		origin := snapshot.Origin{Revision: created.Revision}
		switch next := (origins{d}).next(); {
		case replaces[created.ID]:
			origin.Domain, origin.Known = origins{d}.predecessor(created.ID, &homes)
		case surges[created.ID] && !created.Surge && next != nil:
			origin.Domain, origin.Known = next.Domain, true
		default:
			origin.Added = true
		}
		created.Origin = origin.String(d.spec.LabelKey)
		scaling.Actions[i] = created
	}
}

// origins finds out which pods the new ones replace.
type origins struct{ *domains }

// next returns the domain whose pods are disturbed next; nil if none are.
func (d origins) next() *domain {
	for _, own := range d.inTurn {
		if own.left > 0 {
			return own
		}
	}
	return nil
}

func isCreate(a action.Action) bool {
	_, ok := a.(action.Create)
	return ok
}

// predecessor returns the domain of the pod that a new one replaces. Where it is not known, it is the one that has begun.
func (d origins) predecessor(id string, homes *[]snapshot.Domain) (home snapshot.Domain, known bool) {
	home, known = d.snap.Vacated[id]
	switch {
	case known:
	case !d.snap.Ordinal() && len(*homes) > 0:
		home, known, *homes = (*homes)[0], true, (*homes)[1:]
	case len(d.inTurn) > 0 && d.inTurn[0].begun() > 0:
		home, known = d.inTurn[0].Domain, true
	}
	return home, known
}

// open returns the domains of the pods with random names that no new pod replaces yet, for a number of places: those that are gone,
// and those that are deleted and have no claims for their successors to wait for. If more are deleted, those that were deleted last
// have no successor. Last come those in whose domain new pods replace as many: they may replace others, which nothing shows then.
func (d origins) open(places int) (homes []snapshot.Domain) {
	if d.snap.Ordinal() {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(d.snap.Vacated)) {
		homes = append(homes, d.snap.Vacated[id])
	}
	var terminating []*snapshot.Replica
	for r := range d.snap.Unsteady() {
		if r.Terminating && !r.Surge {
			terminating = append(terminating, r)
		}
	}
	slices.SortStableFunc(terminating, snapshot.LastDeletedFirst)
	replaced := d.replaced()
	var deleted, others []snapshot.Domain
	for _, r := range terminating {
		home := snapshot.DomainOf(r.Pod, d.spec.LabelKey)
		if inherited, known, counts := r.Home(d.spec.LabelKey); known && counts { // of one that was never available
			home = inherited
		}
		if replaced[home] > 0 {
			replaced[home]--
			others = append(others, home)
			continue
		}
		deleted = append(deleted, home)
	}
	deleted = deleted[:min(len(deleted), max(0, places-len(homes)))]
	slices.Reverse(deleted)
	return slices.Concat(homes, deleted, others)
}

// replaced counts the pods of each domain for which there are new pods that are not available yet.
func (d origins) replaced() map[snapshot.Domain]int {
	replaced := map[snapshot.Domain]int{}
	for r := range d.snap.Unsteady() {
		if r.Active() && !r.Available {
			if origin, ok := snapshot.OriginOf(r.Pod, d.spec.LabelKey); ok && origin.Known {
				replaced[origin.Domain]++
			}
		}
	}
	return replaced
}
