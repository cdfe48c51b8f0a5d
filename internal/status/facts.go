// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// count is a number of pods. Ready pods are active, and available ones are ready. Gated ones are active, and wait for a scheduling gate.
type count struct{ active, ready, available, gated int }

// tally counts the pods of a set.
type tally struct {
	// changing is how many active pods have not completed an update in place.
	changing int
	// surge is how many active surge pods will be deleted, condemned how many active pods whose ordinal is not in use.
	surge, condemned int
	// serving is how many available pods stay, judged by their ordinals.
	serving int
	// total and revisions count the pods; gone counts those that are terminating or finished.
	total     count
	revisions map[string]*count
	gone      map[string]int
	// extra counts the surge of each revision in a set with ordinals. It is no part of how far the members have come.
	extra map[string]*count
}

// facts are derived from the input once, and every part of the status uses them. The types that embed them each make one part.
type facts struct {
	tally

	in       *Input
	snap     *snapshot.Set
	previous v1beta1.RollSetStatus
	// reason is the last reason of Progressing.
	reason string

	// want is how many pods are wanted at each revision, excess how many each has too many.
	want, excess map[string]int
	// outdated is how many active pods are not at the update revision, and moving how many will change their revision.
	outdated, moving int
	// proven is true if the update revision is proven now, settled if nothing is waited for. Pods that merely terminate are not.
	proven, settled bool
}

func gather(in *Input) *facts {
	f := &facts{in: in, snap: in.Snap, tally: tallyOf(in.Snap)}
	if in.Previous != nil {
		f.previous = *in.Previous
	}
	if c := find(f.previous.Conditions, v1beta1.ConditionProgressing); c != nil {
		f.reason = c.Reason
	}
	f.want = want(in.Snap)
	f.outdated = f.total.active - f.revision(in.Snap.Update.Name).active
	if in.Invalid == "" && (f.outdated > 0 || in.Snap.Rejected || f.total.active > in.Snap.Limits.Replicas) {
		w := desired.Of(in.Snap)
		f.excess, f.moving = w.Excess, w.Moving()
	}
	f.proven = in.Invalid == "" && in.Snap.Proves() && !in.Plan.Moves()
	f.settled = in.Invalid == "" && !in.Deleting && f.everyPodIsFine()
	return f
}

// tallyOf counts the pods of each revision, and all of them.
func tallyOf(snap *snapshot.Set) tally {
	t := tally{revisions: map[string]*count{}, gone: map[string]int{}, extra: map[string]*count{}}
	for revision, n := range snap.CountSteady() {
		at(t.revisions, revision).addSteady(n)
		t.total.addSteady(n)
		t.serving += n
	}
	for r := range snap.Unsteady() {
		switch {
		case r.Pod == nil:
		case !r.Active():
			t.gone[r.Revision]++
		default:
			t.add(snap, r)
		}
	}
	return t
}

// add counts an active pod.
func (t *tally) add(snap *snapshot.Set, r *snapshot.Replica) {
	at(t.revisions, r.Revision).add(r)
	t.total.add(r)
	if r.Surge {
		t.surge++
	}
	if r.Surge && snap.Ordinal() {
		at(t.extra, r.Revision).add(r)
	}
	if snap.Condemned(r) && !r.Surge {
		t.condemned++
	} else if r.Ready && r.Available {
		t.serving++
	}
	if r.Waiting != "" {
		t.changing++
	}
}

// at returns the count of a revision.
func at(counts map[string]*count, revision string) *count {
	n := counts[revision]
	if n == nil {
		n = &count{}
		counts[revision] = n
	}
	return n
}

// addSteady counts steady pods.
func (c *count) addSteady(n int) {
	c.active += n
	c.ready += n
	c.available += n
}

// add counts an active pod.
func (c *count) add(r *snapshot.Replica) {
	c.active++
	if podstate.SchedulingGated(r.Pod) {
		c.gated++
	}
	if r.Ready {
		c.ready++
	}
	if r.Ready && r.Available {
		c.available++
	}
}

// want returns how many pods a set wants at each revision.
func want(snap *snapshot.Set) map[string]int {
	switch r, p := snap.Limits.Replicas, snap.Partition(); {
	case snap.Rejected:
		return map[string]int{snap.Current.Name: r}
	case !snap.Rolling() || p == 0:
		return map[string]int{snap.Update.Name: r}
	case p >= r:
		return map[string]int{snap.Current.Name: r}
	default:
		return map[string]int{snap.Current.Name: p, snap.Update.Name: r - p}
	}
}

// revision counts the pods of a revision.
func (t *tally) revision(name string) count {
	if n := t.revisions[name]; n != nil {
		return *n
	}
	return count{}
}

// members counts the pods of a revision without surge that has ordinals.
func (t *tally) members(name string) count {
	n := t.revision(name)
	if extra := t.extra[name]; extra != nil {
		n.active -= extra.active
		n.available -= extra.available
	}
	return n
}

// target returns the revision that pods are moved to, regardless of the partition.
func (f *facts) target() string {
	if f.snap.Rejected {
		return f.snap.Current.Name
	}
	return f.snap.Update.Name
}

// everyPodIsFine reports whether the wanted number of pods exists, where they belong, and all are available.
func (f *facts) everyPodIsFine() bool {
	active := f.total.active
	return active == f.snap.Limits.Replicas && f.surge == 0 && f.condemned == 0 && f.moving == 0 && f.changing == 0 && f.total.available == active
}

// newGeneration reports whether the spec was edited since the last status.
func (f *facts) newGeneration() bool { return f.in.Generation > f.previous.ObservedGeneration }

// sameRollout reports whether the last status was about the same update revision, with the same verdict.
func (f *facts) sameRollout() bool {
	return f.previous.UpdateRevision == f.snap.Update.Name && (f.empty() || f.snap.Rejected == (f.reason == v1beta1.ReasonRolledBack))
}

// finished reports whether everything wanted was reached before and only pods have failed since: one restarts, or was lost
// and comes back. That is repair, not a rollout.
func (f *facts) finished() bool {
	switch {
	case f.moving > 0, f.condemned > 0, f.previous.UpdateRevision != f.snap.Update.Name, f.snap.Rejected:
		return false
	case f.reason != v1beta1.ReasonComplete && f.reason != v1beta1.ReasonPartitionReached:
		return false
	case f.total.active == f.snap.Limits.Replicas:
		return true
	default: // scaling by the user is not repair
		return !f.newGeneration() && f.total.active < f.snap.Limits.Replicas
	}
}

// atPartition reports whether the update revision has all the pods that the partition allows, and they are available. Then
// it is not to blame for an unavailable pod at the current revision.
func (f *facts) atPartition() bool {
	updated := f.revision(f.snap.Update.Name)
	return f.snap.Partition() > 0 && f.snap.Rolling() && !f.snap.Rejected && f.moving == 0 &&
		f.total.active-f.surge-f.condemned == f.snap.Limits.Replicas && updated.available == updated.active
}

// rollbackDone reports whether all pods were back at the current revision.
func (f *facts) rollbackDone() bool {
	if !f.snap.Rejected || f.moving > 0 {
		return false
	}
	stalled := find(f.previous.Conditions, v1beta1.ConditionStalled)
	return f.settled || stalled != nil && stalled.Reason == v1beta1.ReasonRolledBack
}

// empty reports whether the set is scaled to 0. Then nothing is rolled out, and nothing is judged.
func (f *facts) empty() bool { return f.in.Invalid == "" && f.snap.Limits.Replicas == 0 }

// failed reports whether a pod of the update revision has ended, or has not become available in the whole deadline, although nothing
// keeps it from being scheduled. A revision is not to blame for anything else: a quota, a refusal, or an old pod that takes long to end.
func (f *facts) failed() bool { return f.untilFailure() == 0 }

// untilFailure returns how long until a pod of the update revision counts as failed; 0 if one does, and a negative number if none may.
func (f *facts) untilFailure() (left time.Duration) {
	deadline, _ := f.snap.ProgressDeadline()
	left = -1
	for r := range f.snap.Unsteady() {
		if r.Pod == nil || r.Terminating || r.Revision != f.snap.Update.Name || r.Available || f.snap.Condemned(r) && !r.Surge || podstate.SchedulingGated(r.Pod) {
			continue
		}
		had := max(0, deadline-f.snap.Now.Sub(podstate.TriedSince(r.Pod)))
		if r.Finished {
			had = 0
		}
		if left < 0 || had < left {
			left = had
		}
	}
	return left
}

// canRollBack reports whether the set asks for a rollback and has a revision to go back to.
func (f *facts) canRollBack() bool {
	return f.snap.Spec.UpdateStrategy.RollingUpdate.OnDeadlineExceeded == v1beta1.RollbackOnDeadline && f.canGoBack()
}

// canGoBack reports whether there is a revision to go back to.
func (f *facts) canGoBack() bool {
	return f.snap.Rolling() && !f.snap.Rejected && !f.snap.Unproven && f.snap.Current.Template != nil
}
