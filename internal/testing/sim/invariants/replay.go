// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// Lag is how old a state may be on which a manager decides, on a machine that does nothing else.
const Lag = 2 * time.Second

// Replay judges the writes of a manager to one set that were recorded on a real API server, in the order of their versions, and returns
// how many there are. It does not know what the caches of the manager showed: a write breaks an invariant if it does whatever they
// showed in the time lag before its reconcile, which ends with a write of the status. Nor does it know nodes, budgets, or requests that
// failed, so rules about these say nothing.
func Replay(entries []apiserver.Entry, set apiserver.Key, manager string, lag time.Duration) (judged int, err error) {
	var now time.Time
	store := apiserver.NewStore(func() time.Time { return now })
	r := &replay{store: store, view: apiserver.NewView(store), manager: manager, set: set, lag: lag, owners: map[types.UID]string{}}
	r.alone = !slices.ContainsFunc(entries, func(e apiserver.Entry) bool { return e.Key.Kind == set.Kind && e.Key != set })
	c := NewChecker(NewCluster(store, set, func() time.Time { return now }))
	c.Restart(manager)
	c.otherwise = r.otherwise
	for _, e := range entries {
		now = e.At // not far from that of the last: those of others are when a watch told of them
		r.last = store.Version()
		entry := store.Record(e)
		switch owner := r.setOf(entry); {
		case entry.Actor != manager:
			c.Observe(entry)
		case (owner == set.Name || owner == "" && r.alone) && entry.Key.Kind != apiserver.Budgets:
			judged++
			r.write(entry)
			r.advance()
			c.Begin(r.reconcile(r.view, now))
			c.Observe(entry)
			c.End()
		}
		if c.Violation != nil {
			return judged, c.Violation
		}
	}
	return judged, nil
}

// replay knows what was recorded so far.
type replay struct {
	store *apiserver.Store
	// view shows the last state.
	view    *apiserver.View
	set     apiserver.Key
	manager string
	// lag is how old a state may be on which the manager decides. No two writes of a reconcile have half as much time between them.
	lag time.Duration
	// alone is true if there is no other set, which a write to an unknown object could be about.
	alone bool
	// last is the version before the write that is judged.
	last int64
	// began is when the manager may have begun the reconcile of the last write, and wrote is when that was. told is true if that was a
	// status.
	began, wrote time.Time
	told         bool
	// owners are the names of the sets by UID, and those of the sets of pods by the UIDs of the pods.
	owners map[types.UID]string
}

// setOf returns the name of the set that a write is about; empty if it is not known.
func (r *replay) setOf(e *apiserver.Entry) string {
	obj := e.New
	if obj == nil {
		obj = e.Old
	}
	owner, known := r.owners[OwnerOf(obj)]
	switch {
	case e.Key.Kind == apiserver.RollSets:
		owner = e.Key.Name
	case !known && e.Old != nil:
		owner = r.owners[OwnerOf(e.Old)]
	}
	if owner == "" {
		owner = obj.GetLabels()[v1beta1.SetLabel]
	}
	if owner != "" && (e.Key.Kind == apiserver.RollSets || e.Key.Kind == apiserver.Pods) {
		r.owners[obj.GetUID()] = owner
	}
	return owner
}

// write notes a write that is judged.
func (r *replay) write(e *apiserver.Entry) {
	if r.told || e.At.Sub(r.wrote) > r.lag/2 {
		r.began = e.At
	}
	r.wrote, r.told = e.At, e.Key.Kind == apiserver.RollSets
}

// advance brings the view to the last state.
func (r *replay) advance() {
	for _, kind := range apiserver.Kinds() {
		for e := r.view.Next(kind); e != nil && e.Version <= r.last; e = r.view.Next(kind) {
			r.view.Deliver(kind)
		}
	}
}

// at returns a reconcile in which the caches showed the state at a version.
func (r *replay) at(version int64, now time.Time) *Reconcile {
	view := apiserver.NewView(r.store)
	for _, kind := range apiserver.Kinds() {
		view.Relist(kind, version)
	}
	return r.reconcile(view, now)
}

func (r *replay) reconcile(view *apiserver.View, now time.Time) *Reconcile {
	return &Reconcile{Manager: r.manager, Set: r.set, View: view, Clock: clocktesting.NewFakePassiveClock(now)}
}

// otherwise yields the reconciles in which a write may have been decided before the caches showed the last state, the latest first.
func (r *replay) otherwise() iter.Seq[*Reconcile] {
	return func(yield func(*Reconcile) bool) {
		for _, other := range slices.Backward(r.store.Log()) {
			if other.Version < r.last && !yield(r.at(other.Version, other.At)) || r.began.Sub(other.At) > r.lag {
				return
			}
		}
	}
}

// holds reports whether a rule holds for a write in another reconcile in which it may have been decided.
func (c *Checker) holds(r rule, e *apiserver.Entry) bool {
	if c.otherwise == nil {
		return false
	}
	known := c.reconcile
	defer func() { c.reconcile = known }()
	for other := range c.otherwise() {
		c.reconcile = other
		if v := c.verdictOn(e); v.set != nil && r.judge(v) == "" {
			return true
		}
	}
	return false
}
