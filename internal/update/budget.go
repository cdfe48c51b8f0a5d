// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"fmt"
	"time"

	"rollset.dev/rollset/internal/action"
	"rollset.dev/rollset/internal/observed"
	"rollset.dev/rollset/internal/wanted"
)

// budget is how much may still be disturbed.
type budget struct {
	set *observed.Set
	// available is how many pods are available, and will be after the moves that were decided on.
	available int
	// moved is the first available pod that is moved now; empty if none is.
	moved string
	// spare is how many pods that are ready may be given up; negative when too few are available already.
	spare int
	// limit is how many pods at a revision may be unavailable while more are moved to it, at least 1. Surge comes on top:
	// it is missed by nobody.
	limit int
	// unavailable counts, for each revision, the pods that are to stay at it and are unavailable, those about to be
	// created, and those about to come back once their predecessor is gone.
	unavailable map[string]int
	// lowest is the pod with the lowest ordinal in use of those that are not available; nil if all are.
	lowest *observed.Replica
	// stuckAfter is when the first terminating pod that counts as unavailable will not count any more; zero if none does.
	stuckAfter time.Duration
}

func newBudget(o *observed.Set, w *wanted.State, scaling action.Plan) budget {
	b := budget{
		set:         o,
		available:   o.Available(),
		unavailable: map[string]int{},
		lowest:      lowestUnavailable(o),
	}
	b.spare = b.available - (o.Limits.Replicas - o.Limits.MaxUnavailable)
	pods := o.Live()
	for i := range o.Replicas {
		r := &o.Replicas[i]
		switch {
		case r.Live() && !r.Available && w.Stays(o, r):
			b.unavailable[r.Revision]++
		case r.Terminating && b.onItsWay(r):
			if revision, ok := w.ComesBackAt(o, r); ok {
				b.unavailable[revision]++
				b.expire(r.Pod.DeletionTimestamp.Sub(o.Now))
			}
		}
	}
	for _, a := range scaling.Actions {
		// What the API server refuses is not on its way, and must not keep broken pods from being replaced.
		if c, ok := a.(action.Create); ok && o.Refused == "" {
			b.unavailable[c.Revision]++
			pods++
		}
	}
	b.limit = max(1, o.Limits.MaxUnavailable+min(w.Surge, max(0, pods-o.Limits.Replicas)))
	return b
}

// expire notes that a count ends when a grace period that has left to run is overdue.
func (b *budget) expire(left time.Duration) {
	if after := left + overdue + time.Second; b.stuckAfter == 0 || after < b.stuckAfter {
		b.stuckAfter = after
	}
}

// overdue is how long after the end of its grace period a terminating pod counts as stuck.
const overdue = 10 * time.Second

// onItsWay says whether the successor of a terminating pod can be expected soon. It cannot if the pod is stuck, on a
// dead node or behind a finalizer, nor if the successor has to wait for other pods, as OrderedReady asks: then it must
// not keep those other pods from being replaced.
func (b *budget) onItsWay(r *observed.Replica) bool {
	if b.set.Now.After(r.Pod.DeletionTimestamp.Add(overdue)) {
		return false
	}
	return !b.set.OrderedReady() || b.lowest == r
}

// lowestUnavailable is the pod with the lowest ordinal in use of those that are not available; nil if all are.
func lowestUnavailable(o *observed.Set) *observed.Replica {
	var lowest *observed.Replica
	for i := range o.Replicas {
		r := &o.Replicas[i]
		if r.Pod == nil || r.Available || lowest != nil && lowest.Ordinal < r.Ordinal {
			continue
		}
		if _, used := o.InUse(r.Ordinal); used {
			lowest = r
		}
	}
	return lowest
}

// refuses says what keeps a move from being made now; empty if nothing does.
func (b *budget) refuses(m wanted.Move) action.HoldKind {
	switch {
	case wanted.IsOld(b.set, m.Replica):
		return ""
	case b.unavailable[m.To] >= b.limit && m.To != m.Replica.Revision:
		return action.HeldByGuard
	case m.Replica.OutOfService():
		return ""
	case b.spare <= 0:
		return action.HeldByBudget
	default:
		return ""
	}
}

func (b *budget) explain(why action.HoldKind, m wanted.Move) string {
	if why == action.HeldByGuard {
		return fmt.Sprintf("%d unavailable at revision %s, no more are moved to it", b.unavailable[m.To], m.To)
	}
	return fmt.Sprintf("maxUnavailable %d: %d of %d pods are available%s", b.set.Limits.MaxUnavailable, b.available, b.set.Limits.Replicas, b.spentOn())
}

// spend takes a move into account. A pod that is ready but not yet available costs as if it were available.
func (b *budget) spend(m wanted.Move) {
	b.unavailable[m.To]++
	if !m.Replica.OutOfService() {
		b.spare--
	}
	if m.Replica.Available {
		b.available--
		b.moved = cmp.Or(b.moved, m.Replica.Pod.Name)
	}
}
