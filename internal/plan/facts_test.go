// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// side is the role of a revision in a set.
type side int

const (
	stray side = iota
	current
	update
	sides
)

// tally is a number of pods for each side.
type tally [sides]int

func (t tally) sum() int { return t[stray] + t[current] + t[update] }

// facts are the numbers of an observation and its plan that the rules compare. They are counted in the simplest way, without the
// packages under test.
type facts struct {
	snap *snapshot.Set
	plan *action.Plan

	// active counts the active pods, serving the available ones. staying and available count those of them whose ordinal is in
	// use, if they have one.
	active, serving, staying, available int
	// missing is how many places have no active pod, and get none by the plan.
	missing int
	// extra is the number of active surge pods that are deleted again.
	extra int
	// have counts the active pods, mix those that users did not name, broken the unready ones among mix.
	have, mix, broken tally
	// unavailable counts the pods of a revision that stay and are not available, that the plan creates, or that come back
	// once the terminating pod in their place is gone.
	unavailable tally
	// perhaps counts those of them at the update revision that may come back at the current one, because the guard holds the other.
	perhaps int
	// unavailableLong counts the active pods among them that have not been ready for a minute.
	unavailableLong tally
	// want is how many pods each side should have. A set with ordinals also wants specific ones.
	want tally

	creates []action.Create
	// created counts the creates of each side.
	created tally
	deletes []deletion
	// written holds the pods that are written, prepares those that are to wait for a hook before they are deleted.
	written  []*corev1.Pod
	prepares []*snapshot.Replica
	// scaledDown and moved count the deletes with those causes, movedBroken the moves of unready pods.
	scaledDown, moved, movedBroken tally
	// movedTo is how many pods are moved to each side, replaced how many because users named them.
	movedTo  tally
	replaced int
	// disturbed is how many ready pods are moved or replaced, lost how many of them are available.
	disturbed, lost int
}

// deletion is a delete with the replica that it takes; nil if there is none.
type deletion struct {
	action.Delete
	replica *snapshot.Replica
}

// gather counts the facts of an observation and its plan.
func (f *facts) gather(snap *snapshot.Set, p *action.Plan) {
	*f = facts{snap: snap, plan: p, creates: f.creates[:0], deletes: f.deletes[:0], written: f.written[:0], prepares: f.prepares[:0]}
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		if !r.Active() {
			continue
		}
		f.active++
		f.have[f.side(r.Revision)]++
		if r.Available {
			f.serving++
		}
		if _, used := snap.InUse(r.Ordinal); used || !snap.Ordinal() {
			f.staying++
			if r.Available {
				f.available++
			}
		}
		if r.Surge {
			f.extra++
			continue
		}
		if !r.ToReplace() {
			f.mix[f.side(r.Revision)]++
		}
		if !r.ToReplace() && !r.Ready {
			f.broken[f.side(r.Revision)]++
		}
	}
	f.want[current] = f.partition()
	f.want[update] = snap.Limits.Replicas - f.want[current]
	places := snap.Limits.Replicas - (f.staying - f.extra)
	var updated []*snapshot.Replica
	for i := range snap.Replicas {
		switch r := &snap.Replicas[i]; {
		case f.comesBack(r) && (snap.Ordinal() || places > 0):
			places--
			f.unavailable[f.returns(r)]++
			if f.returns(r) == update && f.guardsNew() {
				f.perhaps++
			}
		case r.Active() && !r.Available && f.stays(r) && r.State == "":
			f.unavailable[f.side(r.Revision)]++
			if !r.Ready && snap.Now.Sub(podstate.UnreadySince(r.Pod)) >= time.Minute {
				f.unavailableLong[f.side(r.Revision)]++
			}
		case !snap.Ordinal() && f.side(r.Revision) == update && r.Active() && !r.Available && !r.Surge && !r.ToReplace() && r.State == "":
			updated = append(updated, r)
		}
	}
	for _, a := range p.Actions {
		f.count(a)
	}
	f.countStaying(updated)
	f.missing = max(0, snap.Limits.Replicas-f.staying-len(f.creates))
}

// countStaying counts the unavailable pods at the update revision of a set with random names that stay, given those that it has if there
// are too many.
func (f *facts) countStaying(updated []*snapshot.Replica) {
	gone := 0
	for _, r := range updated {
		if f.goes(r) {
			gone++
		}
	}
	f.unavailable[update] += max(0, len(updated)-max(gone, f.excess(update)))
}

func (f *facts) count(a action.Action) {
	if c, ok := a.(action.Create); ok {
		f.creates = append(f.creates, c)
		f.created[f.side(c.Revision)]++
		if !f.snap.RefusesCreate(c.ID) {
			f.unavailable[f.side(c.Revision)]++
		}
	}
	if pod := written(a); pod != nil {
		f.written = append(f.written, pod)
	}
	if state, ok := a.(action.SetState); ok && state.State == v1beta1.LifecyclePreparingDelete {
		r := f.replica(state.Pod)
		f.prepares = append(f.prepares, r)
		if r.Active() && !r.Available && f.stays(r) && r.State == "" {
			f.unavailable[f.side(r.Revision)]-- // it counts as gone
		}
	}
	if d, ok := a.(action.Delete); ok {
		r := f.replica(d.Pod)
		f.deletes = append(f.deletes, deletion{Delete: d, replica: r})
		if r != nil {
			f.countDelete(d, r)
		}
	}
}

// written returns the pod that an action deletes, or whose state it writes.
func written(a action.Action) *corev1.Pod {
	switch a := a.(type) {
	case action.Delete:
		return a.Pod
	case action.SetState:
		return a.Pod
	case action.Unmark:
		return a.Pod
	case action.Adopt, action.Release, action.CloseGate, action.Create, action.CreateClaims, action.DeleteClaim, action.ChangeClaim, action.OpenGate, action.OwnClaim,
		action.Preflight, action.Relabel, action.Resize, action.UpdateInPlace,
		action.CreateBudget, action.UpdateBudget, action.DeleteBudget:
		return nil
	default:
		return nil
	}
}

func (f *facts) countDelete(d action.Delete, r *snapshot.Replica) {
	from := f.side(r.Revision)
	switch d.Cause {
	case action.Finished:
		return
	case action.ScaleDown:
		f.scaledDown[from]++
		if r.Active() && !r.Available && f.stays(r) && r.State == "" {
			f.unavailable[from]-- // a pod that is being deleted counts as gone
		}
		return
	case action.Move:
		f.moved[from]++
		back := f.goesBack(r) && f.side(d.To) == current
		to := f.destination(r)
		if !back && to != from && r.State != v1beta1.LifecyclePreparingDelete { // that move was counted when it was prepared
			f.movedTo[to]++
		}
		if !r.Ready {
			f.movedBroken[from]++
		}
	case action.Replace:
		f.replaced++
	}
	if !r.OutOfService() {
		f.disturbed++
	}
	if r.Available {
		f.lost++
	}
}

func (f *facts) replica(pod *corev1.Pod) *snapshot.Replica {
	for i := range f.snap.Replicas {
		if r := &f.snap.Replicas[i]; r.Pod == pod {
			return r
		}
	}
	return nil
}

func (f *facts) side(revision string) side {
	switch revision {
	case f.snap.Update.Name:
		return update
	case f.snap.Current.Name:
		return current
	default:
		return stray
	}
}

// partition returns how many pods are wanted at the current revision. A revision whose template is lost keeps no more than
// it has.
func (f *facts) partition() int {
	snap := f.snap
	p := snap.Limits.Partition
	switch {
	case !snap.Rolling():
		return 0
	case snap.Rejected:
		p = snap.Limits.Replicas
	}
	if snap.Current.Template == nil {
		p = min(p, f.mix[current])
	}
	return p
}

func (f *facts) frozen() bool {
	return f.snap.Paused() || f.snap.Strategy() == v1beta1.OnDeleteStrategy
}

func (f *facts) recreate() bool { return f.snap.Strategy() == v1beta1.RecreateStrategy }

// surge returns how many pods above R there may be. Those that surge made under an earlier limit stay until they are not
// needed.
func (f *facts) surge() int {
	if f.snap.Ordinal() {
		return 0
	}
	return max(f.snap.Limits.MaxSurge, f.extra)
}

// wantedAt returns the side wanted in the place of an ordinal; false if the set does not use it.
func (f *facts) wantedAt(ordinal int) (side, bool) {
	k, used := f.snap.InUse(ordinal)
	if f.snap.Rolling() && (f.snap.Rejected || k < f.snap.Limits.Partition) {
		return current, used
	}
	return update, used
}

// misplaced reports whether a pod may have to change its revision. In a set with random names only the excess has to.
func (f *facts) misplaced(r *snapshot.Replica) bool {
	if !f.snap.Ordinal() {
		return f.excess(f.side(r.Revision)) > 0
	}
	to, used := f.wantedAt(r.Ordinal)
	if to == current && f.snap.Current.Template == nil && f.side(r.Revision) == update {
		return false
	}
	return used && to != f.side(r.Revision)
}

// old reports whether the strategy Recreate wants a pod gone before any new pod is created.
func (f *facts) old(r *snapshot.Replica) bool {
	if !f.recreate() || f.snap.Paused() {
		return false
	}
	wanted, own := update, f.side(r.Revision)
	if f.snap.Rejected && f.snap.Rolling() {
		wanted = current
	}
	return own != wanted && own != f.makes(wanted)
}

// stays reports whether a pod is to stay at its revision, as far as that is known.
func (f *facts) stays(r *snapshot.Replica) bool {
	_, used := f.snap.InUse(r.Ordinal)
	return (used || !f.snap.Ordinal()) && (f.frozen() || !f.misplaced(r))
}

// excess returns how many pods of a set with random names are surplus at a side, without those that users named.
func (f *facts) excess(s side) int {
	if !f.snap.Rolling() && s == update {
		return 0
	}
	if s == update && f.want[current] == 0 {
		return 0
	}
	return max(0, f.mix[s]-f.want[s])
}

// rests reports whether surplus pods are being deleted, so that no pod in service is touched.
func (f *facts) rests() bool {
	return f.scaledDown.sum() > 0 || slices.ContainsFunc(f.snap.Replicas, func(r snapshot.Replica) bool {
		_, used := f.snap.InUse(r.Ordinal)
		return f.snap.Ordinal() && !used && r.Terminating && f.snap.Now.Before(r.Pod.DeletionTimestamp.Time)
	})
}

// goesBack reports whether a broken pod that is at neither revision may move to the current one, because pods of the update revision have
// not been ready for a minute, as many as the guard allows.
func (f *facts) goesBack(r *snapshot.Replica) bool {
	return f.guardsNew() && r.Broken() && f.side(r.Revision) == stray && f.unavailableLong[update] >= max(1, f.snap.Limits.MaxUnavailable)
}

// destination returns the side at which a moved pod comes back.
func (f *facts) destination(r *snapshot.Replica) side {
	if f.snap.Ordinal() {
		to, _ := f.wantedAt(r.Ordinal)
		return f.makes(to)
	}
	return f.destinationFrom(f.side(r.Revision))
}

// destinationFrom returns the destination of the pods of a set with random names.
func (f *facts) destinationFrom(s side) side {
	switch {
	case s == update:
		return current
	case s == stray && f.keepsClaims():
		return update
	default:
		return f.lacking()
	}
}

// keepsClaims reports whether a set with random names lacks pods of the update revision, and only those mount claims.
func (f *facts) keepsClaims() bool {
	return len(f.snap.Update.Claims) > len(f.snap.Current.Claims) && f.mix[update] < f.want[update]
}

// lacking returns the side that a set with random names lacks, the current one first, or the only wanted one.
func (f *facts) lacking() side {
	if f.mix[current] < f.want[current] || f.want[update] == 0 {
		return f.makes(current)
	}
	return update
}

// makes returns the side at which a pod is created that is wanted at another.
func (f *facts) makes(wanted side) side {
	if f.snap.Paused() {
		wanted = current
	}
	if !f.snap.Rolling() || f.snap.Current.Template == nil {
		return update
	}
	return wanted
}

// comesBack reports whether a terminating pod will soon be followed by another of its identity. It will not if the pod is
// overdue, or if its successor has to wait for its turn.
func (f *facts) comesBack(r *snapshot.Replica) bool {
	if !r.Terminating || f.snap.Now.Sub(r.Pod.DeletionTimestamp.Time) > 0 {
		return false
	}
	if !f.snap.Ordinal() {
		return len(r.Claims) > 0 && !r.Surge
	}
	_, used := f.snap.InUse(r.Ordinal)
	return used && (!f.snap.OrderedReady() || f.waitsFor(r.Ordinal) == nil)
}

// returns is the side of the successor of a terminating pod.
func (f *facts) returns(r *snapshot.Replica) side {
	if !f.snap.Ordinal() {
		if f.keepsClaims() {
			return f.makes(update)
		}
		return f.lacking()
	}
	to, _ := f.wantedAt(r.Ordinal)
	return f.makes(to)
}

// lacksBelow reports whether a place below an ordinal has no available pod. Where a quota is full, a pod that goes makes room for one
// that is missing.
func (f *facts) lacksBelow(ordinal int) bool {
	if f.snap.Refusals[attempt.AnyCreate()].Definite {
		return f.waitsFor(ordinal) != nil
	}
	for k := range f.snap.Limits.Replicas {
		below := f.snap.Ordinals.At(k)
		if below >= ordinal {
			return false
		}
		if !slices.ContainsFunc(f.snap.Replicas, func(r snapshot.Replica) bool { return r.Ordinal == below && r.Available }) {
			return true
		}
	}
	return false
}

// waitsFor returns an unavailable pod below an ordinal; nil if there is none.
func (f *facts) waitsFor(ordinal int) *snapshot.Replica {
	for i := range f.snap.Replicas {
		r := &f.snap.Replicas[i]
		if r.Pod == nil || r.Available || r.Ordinal >= ordinal {
			continue
		}
		if _, used := f.snap.InUse(r.Ordinal); used {
			return r
		}
	}
	return nil
}

// replaceable reports whether a pod was named by a user and can be replaced now.
func (f *facts) replaceable(r *snapshot.Replica) bool {
	if _, used := f.snap.InUse(r.Ordinal); !r.ToReplace() || f.snap.Ordinal() && !used {
		return false
	}
	own := f.side(r.Revision)
	return !f.snap.Paused() || f.snap.Known[r.Revision].Template != nil || own != stray && f.makes(own) == own
}

// createdForNamed counts the pods that are created in a pause at another revision than the one that new pods get then: as surge
// for pods of that revision that are to be replaced.
func (f *facts) createdForNamed() int {
	n := 0
	for s := range sides {
		named := 0
		for i := range f.snap.Replicas {
			if r := &f.snap.Replicas[i]; r.Active() && !r.Surge && r.ToReplace() && f.side(r.Revision) == s {
				named++
			}
		}
		if s != f.makes(current) {
			n += min(named, f.created[s])
		}
	}
	return n
}

// eachWaiting reports whether a predicate holds for every misplaced pod that is not taken.
func (f *facts) eachWaiting(holds func(r *snapshot.Replica) bool) bool {
	for i := range f.snap.Replicas {
		if r := &f.snap.Replicas[i]; r.Active() && !r.ToReplace() && f.misplaced(r) && !f.goes(r) && !holds(r) {
			return false
		}
	}
	return true
}

// spent reports whether a pod may not be given up: an available pod if too few would be left, a ready pod that counts as
// unavailable if too few are left already. Surge has no successor, so that maxUnavailable allows for nothing.
func (f *facts) spent(r *snapshot.Replica) bool {
	left, floor := f.available-f.lost, f.snap.Limits.Replicas-f.snap.Limits.MaxUnavailable
	if r.Surge {
		floor = f.snap.Limits.Replicas
	}
	return left < floor || r.Available && left == floor
}

// waits reports whether a pod of a set with random names waits although the plan could move it.
func (f *facts) waits(s side) bool {
	for i := range f.snap.Replicas {
		r := &f.snap.Replicas[i]
		if r.Active() && r.Ready && !r.ToReplace() && !r.Surge && f.side(r.Revision) == s && !f.goes(r) && !f.spent(r) {
			return true
		}
	}
	return false
}

// guarded reports whether nothing more may be moved to a side.
func (f *facts) guarded(to side) bool {
	perhaps := 0
	if to == current {
		perhaps = f.perhaps
	}
	return perhaps+f.unavailable[to]+f.movedTo[to]+f.replaced+f.waiting() >= max(1, f.snap.Limits.MaxUnavailable)
}

// guardedInService is guarded for a pod in service, against which places without a pod count too.
func (f *facts) guardedInService(to side) bool {
	return f.unavailable[to]+f.movedTo[to]+f.replaced+f.waiting()+f.missing >= max(1, f.snap.Limits.MaxUnavailable)
}

// guardsNew reports whether the current revision stands in for the update revision while the guard holds that.
func (f *facts) guardsNew() bool {
	return !f.noneLately() && f.snap.Rolling() && !f.snap.Rejected && !f.frozen() && f.snap.Strategy() == v1beta1.RollingUpdateStrategy && f.snap.Current.Template != nil
}

// passes reports whether broken pods pass the guard of a side: no pod has been available for a minute, and the guard has held
// for as long.
func (f *facts) passes(to side) bool {
	return f.noneLately() && f.unavailableLong[to] >= max(1, f.snap.Limits.MaxUnavailable)
}

// noneLately reports whether no pod has been available for a minute.
func (f *facts) noneLately() bool {
	return !f.snap.NoneSince.IsZero() && f.snap.Now.Sub(f.snap.NoneSince) >= time.Minute && !f.snap.OrderedReady()
}

// waiting counts the pods that wait or are to wait for a hook before they are deleted.
func (f *facts) waiting() int {
	n := len(f.prepares)
	for i := range f.snap.Replicas {
		if f.snap.Replicas[i].State == v1beta1.LifecyclePreparingDelete {
			n++
		}
	}
	return n
}

// deleted counts the deletes of a cause for which a condition holds.
func (f *facts) deleted(cause action.Cause, is func(r *snapshot.Replica) bool) int {
	n := 0
	for _, d := range f.deletes {
		if d.Cause == cause && is(d.replica) {
			n++
		}
	}
	return n
}

// goes reports whether the plan deletes a pod, or would if a hook did not hold it.
func (f *facts) goes(r *snapshot.Replica) bool {
	return r.State == v1beta1.LifecyclePreparingDelete || slices.Contains(f.prepares, r) || slices.ContainsFunc(f.deletes, func(d deletion) bool { return d.replica == r })
}

// settled reports whether a set is in the wanted state: nothing is left to do, or to wait for.
func (f *facts) settled() bool {
	snap := f.snap
	if f.extra > 0 || f.active != snap.Limits.Replicas || f.available != snap.Limits.Replicas {
		return false
	}
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		if r.Pod != nil && !r.Active() || r.Pod == nil && r.Surge || f.replaceable(r) {
			return false
		}
		if _, used := snap.InUse(r.Ordinal); snap.Ordinal() && !used || !f.frozen() && f.misplaced(r) {
			return false
		}
	}
	return true
}

// placed counts the pods in places of spec.replicas, without surge, and those that are terminating too if they are asked for.
func (f *facts) placed(terminating bool) int {
	n := 0
	for i := range f.snap.Replicas {
		r := &f.snap.Replicas[i]
		_, used := f.snap.InUse(r.Ordinal)
		if r.Pod != nil && !r.Surge && (used || !f.snap.Ordinal()) && (terminating || !r.Terminating) {
			n++
		}
	}
	return n
}

// readyAtUpdate counts the active pods at the update revision that are ready and that no user named, without surge.
func (f *facts) readyAtUpdate() int { return f.mix[update] - f.broken[update] }

// unavailableThere counts the active pods of a side that stay and are not available.
func (f *facts) unavailableThere(s side) int {
	n := 0
	for i := range f.snap.Replicas {
		if r := &f.snap.Replicas[i]; r.Active() && !r.Available && f.stays(r) && f.side(r.Revision) == s {
			n++
		}
	}
	return n
}
