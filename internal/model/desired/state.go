// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package desired compares a set with its wanted state, and lists what differs. It does not decide when: the scale and
// update planners decide what may be done now and what must wait.
//
// The rule: with R replicas and partition p, p pods are wanted at the current revision and R − p at the update revision. In
// a set with ordinals, the first p of the R ordinals in use are wanted at the current revision. In a set with random names,
// any p pods are. Surge has the next ordinals above those in use, and the revision of the highest of them. A lost pod comes back at the revision wanted for its place, or at the current revision while the guard
// holds the update revision.
//
// Every active pod either stays or goes. A pod goes if its ordinal is not in use or, in a set with random names, if it is
// chosen among those above spec.replicas. A place without a pod is missing. Only pods that stay count as available.
package desired

import (
	"slices"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Batch is the largest number of places in one State. It bounds the writes of one reconcile, and the memory for a set with
// 2³¹−1 replicas.
const Batch = 500

// Place is an identity that should have a pod and has none.
type Place struct {
	// ID is the identity.
	ID string
	// Ordinal is the number in ID in a set with ordinals; -1 otherwise.
	Ordinal int
	// Revision is the name of the revision at which the pod comes. Wanted is the one to which it moves as soon as the guard allows it.
	Revision, Wanted string
	// Surge is true for a place above spec.replicas in a rollout.
	Surge bool
}

// Candidate is an active pod that should be replaced by a pod at another revision, or by a new one.
type Candidate struct {
	Replica *snapshot.Replica
	// To is the name of the wanted revision. It is the replica's own only for a pod that a user named.
	To string
	// Named is true for a pod that a user wants replaced, whether its revision is the wanted one or not. Later is true if it is to have
	// another revision in the end, although its successor may come at its own.
	Named, Later bool
}

// State is the difference between a set and its wanted state.
type State struct {
	// Places are the places to fill, in the order in which they should be filled, at most Batch of them.
	Places []Place
	// Missing is how many pods are missing, whether Places lists them or not. Surge is not counted.
	Missing int
	// Going are the active pods that go, the first to go first. All other active pods stay. Unneeded is how many of them, the first
	// ones, go because the rollout needs no surge that they could be.
	Going    []*snapshot.Replica
	Unneeded int
	// Available is how many pods that stay are available.
	Available int
	// Candidates are the pods that stay and may have to move, in the order of the replicas. All named pods must move. Of the
	// others at revision r, Excess[r] must move.
	Candidates []Candidate
	// Excess is how many pods of each revision stay and must move, without named ones. Short is how many pods each revision
	// lacks in a set with random names.
	Excess, Short map[string]int
	// Surge is how many pods above spec.replicas may exist now.
	Surge int
	// due is how many pods of a set with random names are to be moved or replaced, and are missed meanwhile. Each may have one of surge.
	due int
	// Rests is true while surplus pods are being deleted. It is false until scaling has been planned.
	Rests bool

	guard

	goes map[*snapshot.Replica]bool
	// want is how many pods of each revision are wanted in a set with random names.
	want map[string]int
	// lacking is the revision of the next new pod in a set with random names, and of surge in a set with ordinals.
	lacking string
	// added are the names of the claim templates that only the update revision has, in a set with random names. It is empty if
	// the update revision lacks no pod.
	added []string
}

// Goes reports whether an active pod goes.
func (s *State) Goes(r *snapshot.Replica) bool { return s.goes[r] }

// send records that a pod goes.
func (s *State) send(r *snapshot.Replica) {
	if s.goes == nil {
		s.goes = map[*snapshot.Replica]bool{}
	}
	s.goes[r] = true
	s.Going = append(s.Going, r)
}

// SendBack adds pods of the update revision to those that must move, to the current revision.
func (s *State) SendBack(snap *snapshot.Set, back []*snapshot.Replica) {
	if len(back) == 0 {
		return
	}
	for _, r := range back {
		s.Excess[r.Revision]++
		s.Candidates = append(s.Candidates, Candidate{Replica: r, To: snap.Current.Name})
	}
	order := make(map[*snapshot.Replica]int, len(snap.Replicas))
	for i := range snap.Replicas {
		order[&snap.Replicas[i]] = i
	}
	slices.SortFunc(s.Candidates, func(a, b Candidate) int { return order[a.Replica] - order[b.Replica] })
}

// Moving returns how many pods stay and are to change their revision.
func (s *State) Moving() (n int) {
	for _, excess := range s.Excess {
		n += excess
	}
	for i := range s.Candidates {
		if m := &s.Candidates[i]; m.Named && (m.Later || m.To != m.Replica.Revision) {
			n++
		}
	}
	return n
}

// Of compares a set with its wanted state.
func Of(snap *snapshot.Set) *State {
	if snap.Ordinal() {
		return ordinal(snap)
	}
	return random(snap)
}

// ComesBackAt returns the revision at which the set lacks a pod once the given one is gone, or at which its successor of the
// same identity is created. It is empty if there will be no successor. A set with random names lacks a deleted pod at once,
// unless claims tie the pod to its identity.
func (s *State) ComesBackAt(snap *snapshot.Set, r *snapshot.Replica) (revision string, sameIdentity bool) {
	if !snap.Ordinal() {
		return s.guardedAt(snap, s.next(snap, claimsOf(snap, r))), len(r.Claims) > 0 && !r.Surge
	}
	k, used := snap.InUse(r.Ordinal)
	switch {
	case s.isSurgePlace(snap, r.Ordinal):
		return comesBackAt(snap, s.lacking), false
	case !used:
		return "", false
	}
	if revision, ok := owed(snap, r.ID); ok {
		return revision, true
	}
	revision = s.guardedAt(snap, at(snap, k))
	if !r.Active() {
		revision = s.returnsAt(snap, r, revision)
	}
	return revision, true
}

// IsOld reports whether the strategy Recreate wants a pod gone before any new one is created. Under that strategy all pods
// are wanted at one revision.
func IsOld(snap *snapshot.Set, r *snapshot.Replica) bool {
	return snap.Strategy() == v1beta1.RecreateStrategy && target(snap, r, 0) != r.Revision
}

// Stays reports whether an active pod is certain to stay at its revision. It reports false for all pods of a revision with
// excess pods, because it is not known which of them will move.
func (s *State) Stays(snap *snapshot.Set, r *snapshot.Replica) bool {
	if !snap.Ordinal() {
		return !s.Goes(r) && s.Excess[r.Revision] == 0
	}
	if r.Surge {
		return !s.Goes(r)
	}
	k, used := snap.InUse(r.Ordinal)
	return used && target(snap, r, k) == r.Revision
}

// Frozen reports whether no pod may change its revision now, except by being lost.
func Frozen(snap *snapshot.Set) bool {
	return snap.Paused() || snap.Strategy() == v1beta1.OnDeleteStrategy
}

// partition returns how many pods are wanted at the current revision.
func partition(snap *snapshot.Set) int {
	switch {
	case snap.Rejected:
		return snap.Limits.Replicas
	case !snap.Rolling():
		return 0
	default:
		return snap.Partition()
	}
}

// obtainable returns the revision that a pod can have, given the wanted one. It is the current revision while the set is
// paused, and never one whose template is lost.
func obtainable(snap *snapshot.Set, revision string) string {
	if snap.Paused() {
		revision = snap.Current.Name
	}
	if revision == snap.Current.Name && snap.Current.Template == nil {
		return snap.Update.Name
	}
	return revision
}

// owed returns the revision at which the successor of an identity's pod comes in a pause: that of the pod, unless its template is lost.
func owed(snap *snapshot.Set, id string) (revision string, ok bool) {
	revision, ok = snap.Replacing[id]
	return revision, ok && snap.Paused() && snap.Known[revision].Template != nil
}

// replaceable reports whether a pod can be replaced now if a user asks for it. During a pause it is replaced at its own revision,
// and cannot be if that is lost.
func replaceable(snap *snapshot.Set, r *snapshot.Replica) bool {
	return !snap.Paused() || snap.Known[r.Revision].Template != nil
}

// at returns the revision wanted at the k-th place of a set with ordinals.
func at(snap *snapshot.Set, k int) string {
	if snap.Rejected || k < partition(snap) {
		return snap.Current.Name
	}
	return snap.Update.Name
}

// target returns the revision wanted for the pod at the k-th place of a set with ordinals. A revision whose template is lost
// is wanted only for the pods that have it.
func target(snap *snapshot.Set, r *snapshot.Replica, k int) string {
	to := at(snap, k)
	if Frozen(snap) || to == r.Revision {
		return r.Revision
	}
	return obtainable(snap, to)
}
