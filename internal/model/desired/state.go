// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package desired compares what is with what should be, and says in numbers and names what differs. It decides nothing
// about time: what may be done now, and what has to wait, is for the scale and update planners to say.
//
// The rule: with R replicas and partition p, p pods are wanted at the current revision and R − p at the update
// revision. In a set with ordinals the first p of the R ordinals in use are those wanted at the current revision; in a
// set with random names any p pods are. A pod that is lost comes back at the revision wanted for its place.
package desired

import (
	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Batch is the largest number of places that one State names; it bounds the writes of one reconcile and the memory of a
// set with 2³¹−1 replicas.
const Batch = 500

// Place is an identity that should have a pod and has none.
type Place struct {
	// ID is the identity.
	ID string
	// Ordinal is the number that ID spells in a set with ordinals; -1 otherwise.
	Ordinal int
	// Revision is the name of the revision that is wanted there.
	Revision string
	// Surge is true for a place above spec.replicas in a rollout.
	Surge bool
}

// Move is a live pod that should give way to a pod at another revision, or to a fresh one.
type Move struct {
	Replica *snapshot.Replica
	// To is the name of the revision wanted instead. It can be the replica's own only for a pod that a user named.
	To string
	// Named is true for a pod that a user wants replaced, whether its revision is the wanted one or not.
	Named bool
}

// State is the difference between a set and its wanted state.
type State struct {
	// Places are the places to fill, in the order in which they should be filled, at most Batch of them.
	Places []Place
	// Missing is how many pods there are too few, whether Places names them or not; surge is not counted.
	Missing int
	// Candidates are the live pods that may have to move, in the order of the replicas. Those that were named all have to,
	// of the others at revision r Excess[r] have to.
	Candidates []Move
	// Excess is how many live pods each revision has too many, named ones not counted, and Short how many each revision has
	// too few in a set with random names.
	Excess, Short map[string]int
	// Surplus is how many live pods are above what the set may have now, surge included. SurplusSurge is how many on top of
	// those surge made that goes again and is not needed any more.
	Surplus, SurplusSurge int
	// Outside are the live pods whose ordinal is not in use, the highest first.
	Outside []*snapshot.Replica
	// Surge is how many pods above spec.replicas may exist now.
	Surge int

	// want is how many pods are wanted of each revision in a set with random names.
	want map[string]int
	// lacking is the revision of which the next pod is made in a set with random names.
	lacking string
}

// Excess is how many live pods each revision of a set has too many, as in its State.
func Excess(o *snapshot.Set) map[string]int {
	if o.Ordinal() {
		return ordinal(o).Excess
	}
	s, _ := excess(o, count(o))
	return s.Excess
}

// Of compares a set with its wanted state.
func Of(o *snapshot.Set) *State {
	if o.Ordinal() {
		return ordinal(o)
	}
	return random(o)
}

// ComesBackAt is the revision at which a pod is missed when the given one is gone, or at which its successor will come
// under the same identity; false if there will be none. A set with random names misses its pods at once, unless claims
// tie them to their identity.
func (s *State) ComesBackAt(o *snapshot.Set, r *snapshot.Replica) (revision string, sameIdentity bool) {
	if !o.Ordinal() {
		return comesBackAt(o, s.lacking), len(r.Claims) > 0 && !r.Surge
	}
	k, used := o.InUse(r.Ordinal)
	if !used {
		return "", false
	}
	return comesBackAt(o, at(o, k)), true
}

// IsOld says whether the strategy Recreate wants a pod gone before any new one comes. Under that strategy all pods are
// wanted at one revision.
func IsOld(o *snapshot.Set, r *snapshot.Replica) bool {
	return o.Strategy() == v1alpha1.RecreateStrategy && target(o, r, 0) != r.Revision
}

// Stays says whether a live pod is to stay at its revision. Of a revision that has too many pods nobody knows which
// will, and none is counted on.
func (s *State) Stays(o *snapshot.Set, r *snapshot.Replica) bool {
	if !o.Ordinal() {
		return s.Excess[r.Revision] == 0
	}
	k, used := o.InUse(r.Ordinal)
	return used && target(o, r, k) == r.Revision
}

// Frozen says whether no pod may change its revision now, other than by being lost.
func Frozen(o *snapshot.Set) bool {
	return o.Paused() || o.Strategy() == v1alpha1.OnDeleteStrategy
}

// partition is how many pods are wanted at the current revision.
func partition(o *snapshot.Set) int {
	switch {
	case o.Rejected:
		return o.Limits.Replicas
	case !o.Rolling():
		return 0
	default:
		return o.Partition()
	}
}

// comesBackAt returns the revision at which a pod is made where the wanted one is given: the current one while the API server
// refuses pods of the update revision, so that a set lives on with a template that is no good.
func comesBackAt(o *snapshot.Set, revision string) string {
	if revision == o.Update.Name && o.RefusesUpdate() {
		revision = o.Current.Name
	}
	return obtainable(o, revision)
}

// obtainable is the revision that a pod can have where the wanted one is given: the current one while the set is paused, and
// never one whose template is gone.
func obtainable(o *snapshot.Set, revision string) string {
	if o.Paused() {
		revision = o.Current.Name
	}
	if revision == o.Current.Name && o.Current.Template == nil {
		return o.Update.Name
	}
	return revision
}

// replaceable says whether a pod can be replaced now if a user asks for it: not in a pause if that would change its
// revision.
func replaceable(o *snapshot.Set, r *snapshot.Replica) bool {
	return !o.Paused() || comesBackAt(o, r.Revision) == r.Revision
}

// at is the revision wanted at the k-th place of a set with ordinals.
func at(o *snapshot.Set, k int) string {
	if o.Rejected || k < partition(o) {
		return o.Current.Name
	}
	return o.Update.Name
}

// target is the revision wanted of the pod at the k-th place of a set with ordinals. A revision whose template is gone
// is wanted of nothing but the pods that have it.
func target(o *snapshot.Set, r *snapshot.Replica, k int) string {
	to := at(o, k)
	if Frozen(o) || to == r.Revision {
		return r.Revision
	}
	return obtainable(o, to)
}
