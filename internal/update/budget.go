// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// budget is how much may still be disturbed. It is large because each rule counts other pods.
type budget struct {
	snapshot.Budget

	set *snapshot.Set
	// moved is the first available pod that is moved now; empty if there is none.
	moved string
	// rests is true while scaling removes pods: then no pod in service is disturbed.
	rests bool
	// going holds the pods that are deleted, now or once a lifecycle hook releases them.
	going map[*corev1.Pod]bool
	// limit is how many pods at a revision may be unavailable while more are moved to it, at least 1. Surge pods come on
	// top, because they are not needed for availability.
	limit int
	// unavailable counts, for each revision, its unavailable pods that stay, those about to be created, and those about to
	// come back once their predecessor is gone.
	unavailable map[string]int
	// none is true if no pod of the set is available. Only then unreadySince holds, for each revision, when its unavailable
	// active pods became unready, in order.
	none         bool
	unreadySince map[string][]time.Time
	// lowest is the unavailable pod with the lowest ordinal in use; nil if all are available, or if their order does not matter.
	lowest *snapshot.Replica
	// yieldsAfter is when time alone makes the guard yield; zero if it does not.
	yieldsAfter time.Duration
}

// newBudget counts what may be disturbed once scaling is done. The pods that scaling deletes count as gone.
func newBudget(o *snapshot.Set, w *desired.State, scaling action.Plan) budget {
	b := budget{
		Budget:       o.Budget(o.Limits.MinAvailable()),
		set:          o,
		rests:        scaling.ScalesDown(),
		going:        map[*corev1.Pod]bool{},
		unavailable:  map[string]int{},
		unreadySince: map[string][]time.Time{},
	}
	if o.OrderedReady() {
		b.lowest = lowestUnavailable(o)
	}
	b.none = b.Available == 0
	pods := o.Active()
	for _, a := range scaling.Actions {
		// A refused create is not on its way: it neither keeps broken pods from being replaced nor counts as surge.
		if created, ok := a.(action.Create); ok && !o.RefusesCreate(created.ID) {
			pods++
			b.unavailable[created.Revision]++
		}
		if deleted, ok := a.(action.Delete); ok {
			b.going[deleted.Pod] = true
		}
	}
	pods -= b.spendGoing()
	for r := range o.Unsteady() {
		if !r.Active() || !b.going[r.Pod] {
			b.count(r, w)
		}
	}
	for _, since := range b.unreadySince {
		slices.SortFunc(since, time.Time.Compare)
	}
	surging := b.surging(scaling)
	b.limit = max(1, o.Limits.MaxUnavailable+min(w.Surge, max(surging, pods-o.Limits.Replicas)))
	return b
}

// spendGoing takes the active pods that are going into account, and counts them.
func (b *budget) spendGoing() (n int) {
	if len(b.going) == 0 {
		return 0
	}
	for i := range b.set.Replicas {
		if r := &b.set.Replicas[i]; r.Active() && b.going[r.Pod] {
			b.Spend(r)
			n++
		}
	}
	return n
}

// surging counts the pods that surge made and that are deleted again, once scaling is done.
func (b *budget) surging(scaling action.Plan) (n int) {
	for r := range b.set.Unsteady() {
		if r.Surge && r.Active() && !b.going[r.Pod] {
			n++
		}
	}
	for _, a := range scaling.Actions {
		if c, ok := a.(action.Create); ok && c.Surge && !b.set.RefusesCreate(c.ID) {
			n++
		}
	}
	return n
}

// count adds a replica to the counts of the revision that its pod has or comes back at.
func (b *budget) count(r *snapshot.Replica, w *desired.State) {
	switch {
	case r.Active() && !r.Available && w.Stays(b.set, r):
		b.unavailable[r.Revision]++
		if b.none && !r.Ready {
			b.unreadySince[r.Revision] = append(b.unreadySince[r.Revision], podstate.UnreadySince(r.Pod))
		}
	case r.Terminating && b.onItsWay(r):
		if revision, ok := w.ComesBackAt(b.set, r); ok {
			b.unavailable[revision]++
			b.yieldAfter(r.Pod.DeletionTimestamp.Sub(b.set.Now) + overdue + time.Second)
		}
	}
}

// yieldAfter records that the guard may yield after a while.
func (b *budget) yieldAfter(d time.Duration) {
	if b.yieldsAfter == 0 || d < b.yieldsAfter {
		b.yieldsAfter = d
	}
}

// overdue is how long after the end of its grace period a terminating pod counts as stuck.
const overdue = 10 * time.Second

// onItsWay reports whether the successor of a terminating pod can be expected soon. It cannot if the pod is stuck, on a dead
// node or behind a finalizer. It cannot either if OrderedReady makes the successor wait for other pods, because it must not
// keep those pods from being replaced.
func (b *budget) onItsWay(r *snapshot.Replica) bool {
	if b.set.Now.After(r.Pod.DeletionTimestamp.Add(overdue)) {
		return false
	}
	return !b.set.OrderedReady() || b.lowest == r
}

// lowestUnavailable returns the unavailable pod with the lowest ordinal in use; nil if all are available.
func lowestUnavailable(o *snapshot.Set) *snapshot.Replica {
	var lowest *snapshot.Replica
	for r := range o.Unsteady() {
		if r.Pod == nil || r.Available || lowest != nil && lowest.Ordinal < r.Ordinal {
			continue
		}
		if _, used := o.InUse(r.Ordinal); used {
			lowest = r
		}
	}
	return lowest
}

// refuses returns what keeps a move from being made now; empty if nothing does.
func (b *budget) refuses(m desired.Candidate) action.HoldKind {
	switch {
	case desired.IsOld(b.set, m.Replica):
		return ""
	case b.unavailable[m.To] >= b.limit && m.To != m.Replica.Revision && !b.passes(m):
		return action.HeldByGuard
	case b.rests && !m.Replica.OutOfService(), !b.Allows(m.Replica):
		return action.HeldByBudget
	default:
		return ""
	}
}

// guardHolds is how long the guard holds the broken pods of a set in which no pod is available.
const guardHolds = time.Minute

// passes reports whether a broken pod passes the guard, because no pod of the set is available and the guard has held for a
// while. Then nothing is left to protect, and the pods may be ones that become ready only together. They cannot become ready
// together where they are created one after the other.
func (b *budget) passes(m desired.Candidate) bool {
	since := b.unreadySince[m.To]
	if b.set.OrderedReady() || !b.none || m.Replica.Ready || m.Replica.Gate.Closed() || len(since) < b.limit {
		return false
	}
	left := guardHolds - b.set.Now.Sub(since[b.limit-1])
	if left > 0 {
		b.yieldAfter(left)
	}
	return left <= 0
}

func (b *budget) explain(why action.HoldKind, m desired.Candidate) string {
	if why == action.HeldByGuard {
		return fmt.Sprintf("%d unavailable at revision %s, no more are moved to it", b.unavailable[m.To], m.To)
	}
	if b.rests {
		return "scaling down; pods in service are not updated until the pods that are too many are gone"
	}
	return fmt.Sprintf("maxUnavailable %d: %d of %d pods are available%s", b.set.Limits.MaxUnavailable, b.Available, b.set.Limits.Replicas, b.spentOn())
}

// spend takes a move into account.
func (b *budget) spend(m desired.Candidate) {
	b.unavailable[m.To]++
	b.Spend(m.Replica)
	if m.Replica.Available {
		b.moved = cmp.Or(b.moved, m.Replica.Pod.Name)
	}
}
