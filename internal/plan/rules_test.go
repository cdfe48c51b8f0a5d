// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// rule is an invariant of every plan in every state.
type rule struct {
	name string
	// kept reports whether a plan follows the rule.
	kept func(f *facts) bool
}

// rules returns the invariants of a single plan. They do not use the planners' code, so an error goes unseen only if both
// have it.
func rules() []rule {
	return []rule{
		{"a pod is created under a free identity, once", createsFreeIdentities},
		{"what surge left behind is for surge, and the claims of other pods are not", keepsClaimsApart},
		{"claims that only the update revision mounts come back there, and new ones only after them", mountsClaims},
		{"a pod is deleted once, and for a reason that holds", deletesForAReason},
		{"there are never more than R + surge pods", neverTooMany},
		{"a place is not filled twice", fillsPlacesOnce},
		{"only pods above R are surplus", surplusOnly},
		{"moves and replacements keep R - maxUnavailable pods available", movesWithinBudget},
		{"a scale-down takes available pods only as far as they are too many", scaleDownWithinBudget},
		{"OrderedReady creates one pod after the other", createsInOrder},
		{"OrderedReady scales down one pod after the other", scalesDownInOrder},
		{"a pod is created at a revision that is wanted", createsWhatIsWanted},
		{"what is missing comes at the update revision only as far as the guard allows", keepsTheGood},
		{"members come first", fillsMembers},
		{"scaleStrategy.maxUnavailable keeps no place empty that had a pod", limitsNoReplacement},
		{"pods that the set never had are created within scaleStrategy.maxUnavailable", createsWithinLimit},
		{"only misplaced pods are moved, and none while the set is frozen", movesMisplaced},
		{"not more than maxUnavailable + surge pods are unavailable at a revision moved to", movesWithinGuard},
		{"a broken pod that is outdated waits for nothing but the guard", brokenIsNeverStuck},
		{"a broken pod passes the guard that has held for a minute where no pod is available", brokenPassesGuard},
		{"no pod waits for a budget that is there", budgetIsUsed},
		{"a pod that a user named, or whose node leaves, waits for nothing but budget and guard", namedIsReplaced},
		{"no pod is written to twice", writesOnce},
		{"what a plan takes out of service, hooks or not, keeps R - maxUnavailable pods available", takesWithinBudget},
		{"surge made before a pause goes before any old pod", pauseKeepsOldPods},
		{"a pod that its hook holds is not deleted before the limit of the hook", waitsForHook},
	}
}

func createsFreeIdentities(f *facts) bool {
	for i, c := range f.creates {
		for j := range f.snap.Replicas {
			if r := &f.snap.Replicas[j]; r.Pod != nil && r.ID == c.ID {
				return false
			}
		}
		if slices.ContainsFunc(f.creates[:i], func(d action.Create) bool { return d.ID == c.ID }) {
			return false
		}
	}
	return true
}

func keepsClaimsApart(f *facts) bool {
	return !slices.ContainsFunc(f.creates, func(c action.Create) bool {
		return slices.ContainsFunc(f.snap.Replicas, func(r snapshot.Replica) bool { return r.ID == c.ID && r.Surge != c.Surge })
	})
}

func mountsClaims(f *facts) bool {
	if f.guardsNew() {
		return true // the guard may send those that the update revision wants to the current one
	}
	creates := func(at side, claimed bool) bool {
		return slices.ContainsFunc(f.creates, func(c action.Create) bool {
			has := slices.ContainsFunc(f.snap.Replicas, func(r snapshot.Replica) bool { return r.ID == c.ID && len(r.Claims) > 0 })
			return !c.Surge && f.side(c.Revision) == at && has == claimed
		})
	}
	return len(f.snap.Update.Claims) == len(f.snap.Current.Claims) || !creates(current, true) || !creates(update, false)
}

func deletesForAReason(f *facts) bool {
	for i, d := range f.deletes {
		r := d.replica
		if r == nil || r.Terminating || (d.Cause == action.Finished) != r.Finished {
			return false
		}
		if d.Cause == action.Replace && !r.ToReplace() || d.Cause == action.Replace && !r.Specified && f.snap.Nowhere {
			return false
		}
		if slices.ContainsFunc(f.deletes[:i], func(e deletion) bool { return e.replica == r }) {
			return false
		}
	}
	return true
}

func neverTooMany(f *facts) bool {
	return len(f.creates) == 0 || f.staying+len(f.creates) <= f.snap.Limits.Replicas+f.surge()
}

// fillsMembers exempts sets whose pods come in their order, or not while old ones are there. A surplus pod that goes now, or that
// waits for enough available ones, makes one new pod wait, unless none is about to become available.
func fillsMembers(f *facts) bool {
	if !f.snap.Ordinal() || f.snap.OrderedReady() || f.recreate() || f.snap.Limits.ScaleMaxUnavailable >= 0 {
		return true
	}
	free := 0
	for k := range f.snap.Limits.Replicas {
		ordinal := f.snap.Ordinals.At(k)
		if !slices.ContainsFunc(f.snap.Replicas, func(r snapshot.Replica) bool { return r.Ordinal == ordinal && r.Pod != nil }) {
			free++
		}
	}
	waiting, late := 0, true
	for i := range f.snap.Replicas {
		r := &f.snap.Replicas[i]
		_, used := f.snap.InUse(r.Ordinal)
		switch {
		case !used && r.Available && !f.goes(r):
			waiting++
		case used && r.Terminating && f.comesBack(r), used && r.Active() && !r.Available && (r.Ready || f.snap.Now.Sub(podstate.UnreadySince(r.Pod)) < time.Minute):
			late = false
		}
	}
	if late && f.scaledDown.sum() == 0 && free > 0 && len(f.creates) == 0 {
		return false
	}
	return len(f.creates) >= free-f.scaledDown.sum()-waiting
}

// fillsPlacesOnce counts the pods of a set with random names that hold a place although they are not active: finished pods
// until they are deleted, and terminating ones until their claims are free.
func fillsPlacesOnce(f *facts) bool {
	if f.snap.Ordinal() || len(f.creates) == 0 {
		return true
	}
	held := 0
	for i := range f.snap.Replicas {
		r := &f.snap.Replicas[i]
		if !r.Surge && (r.Finished && !r.Terminating || r.Terminating && len(r.Claims) > 0) {
			held++
		}
	}
	return f.active+held+len(f.creates) <= f.snap.Limits.Replicas+f.surge()
}

func surplusOnly(f *facts) bool {
	if !f.snap.Ordinal() {
		kept := f.deleted(action.ScaleDown, func(r *snapshot.Replica) bool { return !r.Surge })
		return kept <= max(0, f.active-f.extra-f.snap.Limits.Replicas)
	}
	return f.deleted(action.ScaleDown, func(r *snapshot.Replica) bool {
		_, used := f.snap.InUse(r.Ordinal)
		return used
	}) == 0
}

// movesWithinBudget exempts old pods under the strategy Recreate, but not pods that are replaced at the same revision.
func movesWithinBudget(f *facts) bool {
	disturbed, lost := f.disturbed, f.lost
	if f.recreate() {
		disturbed = f.deleted(action.Replace, func(r *snapshot.Replica) bool { return r.Ready && !f.old(r) })
		lost = f.deleted(action.Replace, func(r *snapshot.Replica) bool { return r.Available && !f.old(r) })
	}
	if !f.snap.Ordinal() {
		lost += f.deleted(action.ScaleDown, func(r *snapshot.Replica) bool { return r.Available })
	}
	return disturbed == 0 || f.available-lost >= f.snap.Limits.Replicas-f.snap.Limits.MaxUnavailable
}

// scaleDownWithinBudget exempts pods that users named: those may be deleted although they are needed.
func scaleDownWithinBudget(f *facts) bool {
	if !f.snap.Ordinal() {
		taken := f.deleted(action.ScaleDown, func(r *snapshot.Replica) bool { return r.Available })
		named := f.deleted(action.ScaleDown, func(r *snapshot.Replica) bool { return r.Available && r.Specified })
		return taken == named || f.available-taken >= f.snap.Limits.Replicas
	}
	taken := f.deleted(action.ScaleDown, func(r *snapshot.Replica) bool { return r.Available && !f.old(r) })
	return taken == 0 || f.active-f.scaledDown.sum() >= f.snap.Limits.Replicas ||
		f.serving-taken >= f.snap.Limits.Replicas-f.snap.Limits.MaxUnavailable
}

func createsInOrder(f *facts) bool {
	if !f.snap.OrderedReady() || len(f.creates) == 0 {
		return true
	}
	ordinal, err := strconv.Atoi(f.creates[0].ID)
	if err != nil || len(f.creates) > 1 || f.waitsFor(ordinal) != nil {
		return false
	}
	below := 0
	for i := range f.snap.Replicas {
		r := &f.snap.Replicas[i]
		if _, used := f.snap.InUse(r.Ordinal); used && r.Pod != nil && r.Ordinal < ordinal {
			below++
		}
	}
	place, used := f.snap.InUse(ordinal)
	return used && below == place
}

// scalesDownInOrder allows broken pods to go before their turn. It also allows those that Recreate wants gone, if the
// highest has to wait or none is surplus, and those out of service, if none is surplus and the highest need not wait.
func scalesDownInOrder(f *facts) bool {
	if !f.snap.OrderedReady() || f.scaledDown.sum() == 0 {
		return true
	}
	i := slices.IndexFunc(f.deletes, func(d deletion) bool { return d.Cause == action.ScaleDown })
	victim := f.deletes[i].replica
	var highest *snapshot.Replica
	for j := range f.snap.Replicas {
		r := &f.snap.Replicas[j]
		if _, used := f.snap.InUse(r.Ordinal); used {
			continue
		}
		if r.Terminating {
			return false
		}
		if r.Active() && (highest == nil || r.Ordinal > highest.Ordinal) {
			highest = r
		}
	}
	surplus, waits := f.active > f.snap.Limits.Replicas, f.lacksBelow(highest.Ordinal)
	urgent := func(r *snapshot.Replica) bool {
		return !r.Ready || (waits || !surplus) && f.old(r) || !waits && !surplus && r.Updating
	}
	for j := range f.snap.Replicas {
		r := &f.snap.Replicas[j]
		if _, used := f.snap.InUse(r.Ordinal); !used && r.Active() && !urgent(victim) && urgent(r) {
			return false
		}
	}
	return f.scaledDown.sum() == 1 && (urgent(victim) || victim == highest && !f.lacksBelow(victim.Ordinal))
}

// createsWhatIsWanted does not count pods that users named, because their surge is created before they are deleted.
func createsWhatIsWanted(f *facts) bool {
	if f.snap.Paused() {
		return f.created[f.makes(current)]+f.createdForNamed() == len(f.creates)
	}
	if f.snap.Ordinal() {
		return !slices.ContainsFunc(f.creates, func(c action.Create) bool {
			ordinal, err := strconv.Atoi(c.ID)
			to, used := f.wantedAt(ordinal)
			came := f.side(c.Revision)
			return err != nil || !used || came != f.makes(to) && (came != current || !f.guardsNew())
		})
	}
	created := f.created
	for _, c := range f.creates {
		if c.Surge { // surge is deleted again
			created[f.side(c.Revision)]--
		}
	}
	for s := range sides {
		short := max(0, f.want[s]-f.mix[s])
		if s == current && f.guardsNew() {
			members := min(f.mix[update], f.want[update]) // the others go back
			if !f.snap.GivesBack() {                      // what maxUnavailable does not allow there is surge
				members -= min(f.snap.Limits.MaxSurge, max(0, members-f.readyAtUpdate()-f.snap.Limits.MaxUnavailable))
			}
			short += max(0, f.want[update]-members)
		}
		if f.snap.Rolling() && created[s] > short {
			return false
		}
	}
	return f.created[stray] == 0
}

// keepsTheGood checks both sides: no pod comes at the update revision that the guard does not allow there, and as many come there
// as it allows. With ordinals, places in which a pod terminates may be served first.
func keepsTheGood(f *facts) bool {
	if !f.guardsNew() {
		return true
	}
	there, limit := f.unavailableThere(update), max(1, f.snap.Limits.MaxUnavailable)
	if !f.snap.Ordinal() && f.excess(update) > 0 { // unready ones go back first
		there = min(f.broken[update], f.want[update]-f.readyAtUpdate())
	}
	there -= f.deleted(action.ScaleDown, func(r *snapshot.Replica) bool { return f.side(r.Revision) == update && !r.Available && f.stays(r) })
	if f.created[update] > 0 && there+f.created[update] > max(limit, f.snap.Limits.MaxUnavailable+f.surge()) {
		return false
	}
	wanted := max(0, f.want[current]-f.mix[current])
	if f.snap.Ordinal() {
		wanted = 0
		for _, c := range f.creates {
			ordinal, err := strconv.Atoi(c.ID)
			if to, _ := f.wantedAt(ordinal); err == nil && to == current {
				wanted++
			}
		}
	}
	for i := range f.snap.Replicas {
		r := &f.snap.Replicas[i]
		_, used := f.snap.InUse(r.Ordinal)
		if f.snap.Ordinal() && used && r.Pod != nil && !r.Active() || !f.snap.Ordinal() && r.Terminating && len(r.Claims) > 0 {
			there++
		}
	}
	limited := f.snap.Limits.ScaleMaxUnavailable >= 0 || f.snap.OrderedReady()
	return limited || f.created[current] <= wanted || there+f.created[update] >= f.snap.Limits.MaxUnavailable // with 0, only surge comes there
}

func movesMisplaced(f *facts) bool {
	if f.moved.sum() > 0 && f.frozen() {
		return false
	}
	if f.snap.Ordinal() {
		return f.deleted(action.Move, f.misplaced) == f.moved.sum()
	}
	for s := range sides {
		aimless := f.movedTo[s] > 0 && f.want[s] == 0 && f.snap.Current.Template != nil
		if f.moved[s] > f.excess(s) || aimless {
			return false
		}
	}
	return true
}

func movesWithinGuard(f *facts) bool {
	limit := max(1, f.snap.Limits.MaxUnavailable+f.surge())
	for s := range sides {
		passed := f.recreate() || f.passes(s) && f.moved == f.movedBroken
		perhaps := 0
		if s == update {
			perhaps = f.perhaps
		}
		if f.movedTo[s] > 0 && f.unavailable[s]-perhaps+f.movedTo[s] > limit && !passed {
			return false
		}
	}
	return true
}

// brokenIsNeverStuck exempts a plan that scales down, because the pods that it deletes are gone in the next plan.
func brokenIsNeverStuck(f *facts) bool {
	if f.frozen() || f.scaledDown.sum() > 0 {
		return true
	}
	if f.snap.Ordinal() {
		return f.eachWaiting(func(r *snapshot.Replica) bool { return r.Ready || f.guarded(f.destination(r)) })
	}
	if f.waiting() > 0 {
		return true // which of them are deleted is not known
	}
	for s := range sides {
		if f.movedBroken[s] < min(f.broken[s], f.excess(s)) && !f.guarded(f.destinationFrom(s)) {
			return false
		}
	}
	return true
}

func brokenPassesGuard(f *facts) bool {
	if f.frozen() || f.scaledDown.sum() > 0 {
		return true
	}
	full := max(1, f.snap.Limits.MaxUnavailable) + f.surge()
	held := func(to side) bool { return !f.passes(to) || f.unavailableLong[to] < full }
	if f.snap.Ordinal() {
		return f.eachWaiting(func(r *snapshot.Replica) bool { return r.Ready || held(f.destination(r)) })
	}
	for s := range sides {
		if f.movedBroken[s] < min(f.broken[s], f.excess(s)) && !held(f.destinationFrom(s)) {
			return false
		}
	}
	return true
}

func budgetIsUsed(f *facts) bool {
	if f.frozen() || f.rests() || f.waiting() > 0 {
		return true
	}
	if f.snap.Ordinal() {
		return f.eachWaiting(func(r *snapshot.Replica) bool { return !r.Ready || f.spent(r) || f.guardedInService(f.destination(r)) })
	}
	for s := range sides {
		if f.moved[s] < f.excess(s) && f.waits(s) && !f.guardedInService(f.destinationFrom(s)) {
			return false
		}
	}
	return true
}

func namedIsReplaced(f *facts) bool {
	if f.rests() {
		return true
	}
	// Paused, a pod comes back at its own revision. Under OnDelete it comes back at the one that is wanted.
	guarded := !f.snap.Paused() && (f.guardedInService(current) || f.guardedInService(update))
	for i := range f.snap.Replicas {
		r := &f.snap.Replicas[i]
		waits := r.Active() && f.replaceable(r) && !f.goes(r) && (r.Specified || !f.snap.Nowhere)
		if waits && (!r.Ready || !f.spent(r)) && !guarded {
			return false
		}
	}
	return true
}

func writesOnce(f *facts) bool {
	for i, pod := range f.written {
		if slices.Contains(f.written[:i], pod) {
			return false
		}
	}
	return true
}

// takesWithinBudget covers sets with hooks, in which a pod that waits for its hook counts as gone. The rules of moves and of
// scaling down cover the others. A plan that takes no more pods than are surplus only scales down.
func takesWithinBudget(f *facts) bool {
	if f.snap.Spec.Lifecycle == nil || f.recreate() {
		return true
	}
	prepared := 0
	for _, r := range f.prepares {
		if _, used := f.snap.InUse(r.Ordinal); r.Available && !r.Specified && (used || !f.snap.Ordinal()) {
			prepared++
		}
	}
	scaled := f.deleted(action.ScaleDown, func(r *snapshot.Replica) bool { return !f.snap.Ordinal() && r.Available && !r.Specified })
	taken, tooMany := prepared+f.lost+scaled, f.staying-f.snap.Limits.Replicas
	return taken <= max(0, tooMany) || f.available-taken >= f.snap.Limits.Replicas-f.snap.Limits.MaxUnavailable
}

func waitsForHook(f *facts) bool {
	if f.snap.Spec.Lifecycle == nil {
		return true
	}
	hook := f.snap.Spec.Lifecycle.PreDelete
	for _, d := range f.deletes {
		pod := d.replica.Pod
		if pod.Labels["example.com/hook"] != "on" {
			continue
		}
		_, date, _ := strings.Cut(pod.Annotations[v1beta1.LifecycleSinceAnnotation], " ")
		since, err := time.Parse(time.RFC3339, date)
		if err != nil || hook.TimeoutSeconds == nil || f.snap.Now.Sub(since) < time.Duration(*hook.TimeoutSeconds)*time.Second {
			return false
		}
	}
	return true
}

func pauseKeepsOldPods(f *facts) bool {
	if f.snap.Ordinal() || !f.snap.Paused() || !f.snap.Rolling() || f.snap.GivesBack() {
		return true
	}
	surplus := f.active - f.snap.Limits.Replicas
	old := f.deleted(action.ScaleDown, func(r *snapshot.Replica) bool {
		return f.side(r.Revision) != update && !r.ToReplace()
	})
	return old == 0 || old <= surplus-min(surplus, f.surge(), f.have[update])
}

// limitsNoReplacement counts a place as filled while a pod in it is terminating, and once the plan fills it.
func limitsNoReplacement(f *facts) bool {
	if !slices.ContainsFunc(f.plan.Held, func(h action.Hold) bool { return h.Kind == action.HeldByLimit }) {
		return true
	}
	return f.placed(true)+len(f.creates) >= f.snap.Reached
}

// createsWithinLimit counts surge apart: pods that are marked, and pods above spec.replicas. A finished pod has its place until
// it is deleted.
func createsWithinLimit(f *facts) bool {
	limit := f.snap.Limits.ScaleMaxUnavailable
	if limit < 0 {
		return true
	}
	allowed := max(0, f.snap.Reached-f.placed(false))
	for s := range sides {
		allowed += max(0, limit-f.unavailableThere(s))
	}
	surge := 0
	for _, c := range f.creates {
		if c.Surge {
			surge++
		}
	}
	surge = max(surge, f.placed(false)+len(f.creates)-f.snap.Limits.Replicas)
	return len(f.creates)-surge <= allowed
}
