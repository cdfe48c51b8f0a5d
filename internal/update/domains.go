// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package update

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/desired"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// domains decide which failure domain may lose healthy pods now. It is nil for a set without failure domains. The methods
// answer for one plan.
type domains struct {
	snap *snapshot.Set
	spec *v1beta1.FailureDomains
	// excess is how many pods of each revision must move. Without any, pods are only replaced because users named them.
	excess map[string]int
	all    map[snapshot.Domain]*domain
	// inTurn are all domains, in the order in which they are disturbed.
	inTurn []*domain
	// busy are the domains with a pod that is not available or is still being changed.
	busy []*domain
	// lost is a pod that is not available and whose domain is not known. It holds all domains.
	lost waiter
	// atWork is the domain of the first healthy pod that is to be disturbed by this plan; nil until one was judged.
	atWork *domain
}

// domain is what is known of a failure domain.
type domain struct {
	snapshot.Domain

	// rank is its place in the order.
	rank int
	// moved is how many of its pods are at the revision that pods move to, left how many are still to be disturbed.
	moved, left int
	// waits is a pod of it that is not available or is still being changed, or that is missing; its pod is empty if there is none.
	waits waiter
	// since is when the last of the pods that moved became available.
	since time.Time
}

// waiter is a pod that a domain waits for, and why: a clause without its subject.
type waiter struct{ pod, why string }

// newDomains returns the failure domains of a set, and what each of them waits for. The moves are those that may be made, in the
// order of the replicas. A pod that goes counts as gone.
func newDomains(snap *snapshot.Set, w *desired.State, moves []desired.Candidate) *domains {
	spec := snap.Domains()
	if spec == nil {
		return nil
	}
	d := &domains{snap: snap, spec: spec, excess: w.Excess, all: map[snapshot.Domain]*domain{}}
	var fresh, terminating []*snapshot.Replica
	active := 0
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		isCandidate := len(moves) > 0 && moves[0].Replica == r
		if isCandidate {
			moves = moves[1:]
		}
		if r.Active() && !r.Surge && !w.Goes(r) {
			active++
		}
		switch {
		case r.Pod == nil, w.Goes(r), r.Surge && !r.Available, snap.Condemned(r):
		case r.Terminating:
			terminating = append(terminating, r)
		case isCandidate:
			d.leaves(r)
		case !r.Available && !r.Finished:
			fresh = append(fresh, r)
		default:
			d.stays(r)
		}
	}
	for _, r := range withoutSurplus(fresh, active-snap.Limits.Replicas) {
		d.stays(r)
	}
	d.doubt(w)
	d.miss(w, d.depart(terminating))
	d.sort()
	if len(d.inTurn) > 0 && d.lost.pod != "" && d.inTurn[0].begun() > 0 {
		d.hold(d.inTurn[0], d.lost)
		d.lost = waiter{}
	}
	return d
}

// doubt makes domains wait for pods that may be deleted already.
func (d *domains) doubt(w *desired.State) {
	for _, r := range d.snap.Doubted() {
		if !r.Surge && !w.Goes(r) && !d.snap.Condemned(r) {
			d.hold(d.of(r), waiter{r.Pod.Name, "may be deleted already: its deletion was not answered"})
		}
	}
}

// withoutSurplus returns unavailable pods without those that are not missed yet: the newest stand in for pods that are there
// still.
func withoutSurplus(fresh []*snapshot.Replica, surplus int) []*snapshot.Replica {
	if surplus <= 0 {
		return fresh
	}
	slices.SortStableFunc(fresh, func(a, b *snapshot.Replica) int { return cmp.Compare(b.Created, a.Created) })
	return fresh[min(surplus, len(fresh)):]
}

// of returns the domain that a pod is in.
func (d *domains) of(r *snapshot.Replica) *domain {
	return d.at(snapshot.DomainOf(r.Pod, d.spec.LabelKey))
}

func (d *domains) at(key snapshot.Domain) *domain {
	found := d.all[key]
	if found == nil {
		found = &domain{Domain: key}
		d.all[key] = found
		d.inTurn = append(d.inTurn, found)
	}
	return found
}

// hold makes a domain wait for a pod.
func (d *domains) hold(own *domain, w waiter) {
	if own.waits.pod == "" {
		own.waits = w
		d.busy = append(d.busy, own)
	}
}

// await makes the domain of an unavailable pod wait for it.
func (d *domains) await(r *snapshot.Replica) {
	home, known, counts := r.Home(d.spec.LabelKey)
	switch {
	case !counts:
	case known:
		d.hold(d.at(home), waiter{r.Pod.Name, lack(r)})
	default:
		d.lost = waiter{r.Pod.Name, lack(r)}
	}
}

// isHomeless reports whether a pod is unavailable, and it is not known in which domain it is waited for.
func (d *domains) isHomeless(r *snapshot.Replica) bool {
	_, known, counts := r.Home(d.spec.LabelKey)
	return !r.Available && counts && !known
}

// leaves counts a pod that is to be disturbed.
func (d *domains) leaves(r *snapshot.Replica) {
	if !r.Available {
		d.await(r)
	}
	if r.Node != "" { // otherwise it is replaced wherever others are
		d.of(r).left++
	}
}

// stays counts a pod that is not to be disturbed. One that replaces a pod of another domain has moved in that domain.
func (d *domains) stays(r *snapshot.Replica) {
	switch {
	case r.Finished:
		d.hold(d.of(r), waiter{r.Pod.Name, lack(r)})
		return
	case !r.Available:
		d.await(r)
	case r.Waiting != "":
		d.hold(d.of(r), waiter{r.Pod.Name, lack(r)})
	}
	origin, ok := snapshot.OriginOf(r.Pod, d.spec.LabelKey)
	var own *domain
	switch created := ok && origin.Revision == r.Revision; {
	case d.excess[r.Revision] > 0, created && origin.Added, !created && len(d.excess) == 0:
		return // it did not move
	case created && origin.Known:
		own = d.at(origin.Domain)
	case r.Node == "", d.isHomeless(r):
		return // it is not known where it moved
	default:
		own = d.of(r)
	}
	if len(d.excess) > 0 {
		own.moved++
	}
	for _, t := range [...]time.Time{r.ReadySince.Add(d.snap.MinReady()), podstate.Started(r.Pod)} {
		if t.After(own.since) && !t.After(d.snap.Now) {
			own.since = t
		}
	}
}

// depart counts the terminating pods whose successors are not available, and returns how many there are. Ordinals come back only
// when they are gone. Of pods with random names, as many have no available successor as pods are missing: those that were
// deleted last.
func (d *domains) depart(terminating []*snapshot.Replica) int {
	if !d.snap.Ordinal() {
		slices.SortStableFunc(terminating, snapshot.LastDeletedFirst)
		missing := max(0, d.snap.Limits.Replicas-d.snap.Available())
		terminating = terminating[:min(missing, len(terminating))]
	}
	for _, r := range terminating {
		d.hold(d.of(r), waiter{r.Pod.Name, lack(r)})
	}
	return len(terminating)
}

// miss counts the places without a pod that had one. Of a set with random names, a terminating pod may account for one of them.
func (d *domains) miss(w *desired.State, terminating int) {
	for _, id := range slices.Sorted(maps.Keys(d.snap.Vacated)) {
		d.hold(d.at(d.snap.Vacated[id]), waiter{d.snap.PodName(id), "has no pod"})
	}
	unknown := len(d.snap.Vacated)
	if !d.snap.Ordinal() {
		unknown += terminating
	}
	for i, place := range successors(d.snap, w) {
		if _, known := d.snap.Vacated[place.ID]; !known && (d.snap.Ordinal() || i >= unknown) {
			d.lost = waiter{d.snap.PodName(place.ID), "has no pod"}
		}
	}
}

// successors returns the places that had a pod before. The others were added to the set.
func successors(snap *snapshot.Set, w *desired.State) (had []desired.Place) {
	had = slices.DeleteFunc(slices.Clone(w.Places), func(p desired.Place) bool { return p.Surge })
	if snap.Ordinal() {
		return slices.DeleteFunc(had, func(p desired.Place) bool {
			k, _ := snap.InUse(p.Ordinal)
			_, vacated := snap.Vacated[p.ID]
			return k >= snap.Reached && !vacated
		})
	}
	lost := max(snap.Reached-(snap.Limits.Replicas-w.Missing), min(len(snap.Vacated), w.Missing), 0) // a pod that was added may stand before
	return had[:min(lost, len(had))]
}

// sort puts the domains in their order: those that have begun, the furthest first, then the others by name. Where pods are
// replaced at their revision, it is not known how many were, and the domain in which one was replaced last comes first.
func (d *domains) sort() {
	slices.SortFunc(d.inTurn, func(a, b *domain) int {
		return cmp.Or(cmp.Compare(b.begun(), a.begun()), d.soaking(b).Compare(d.soaking(a)), snapshot.CompareDomains(a.Domain, b.Domain))
	})
	for i, own := range d.inTurn {
		own.rank = i
	}
}

// soaking returns since when other domains soak because of one that has pods left; the zero time if they do not.
func (d *domains) soaking(own *domain) (since time.Time) {
	if len(d.excess) > 0 || own.left == 0 || d.snap.Now.Sub(own.since) >= d.soak() {
		return since
	}
	return own.since
}

// begun returns how many pods of a domain have moved while others have not; 0 if none has, or all have.
func (d *domain) begun() int {
	if d.left == 0 {
		return 0
	}
	return d.moved
}

// rank returns the place of a pod's domain in the order.
func (d *domains) rank(r *snapshot.Replica) int {
	if d == nil || r.OutOfService() {
		return 0
	}
	return d.of(r).rank
}

// refuses reports whether a healthy pod must wait for another domain. The first one that is judged says which domain is at
// work. A pod that is replaced by another of its revision, because it cannot be changed in place, does not wait for its turn.
func (d *domains) refuses(m desired.Candidate) bool {
	if d == nil || m.Replica.OutOfService() {
		return false
	}
	own := d.of(m.Replica)
	if d.atWork == nil && takesTurns(m) {
		d.atWork = own
	}
	return d.obstacle(m, own).kind != nothing
}

// takesTurns reports whether a move waits for the turn of its domain.
func takesTurns(m desired.Candidate) bool { return m.Named || m.To != m.Replica.Revision }

// disturb counts a pod that is disturbed by this plan.
func (d *domains) disturb(r *snapshot.Replica) {
	if d != nil {
		d.hold(d.of(r), waiter{r.Pod.Name, "is next"})
	}
}

// hindrance is a kind of obstacle.
type hindrance int

const (
	nothing hindrance = iota
	turn
	unavailable
	missing
	soak
)

// obstacle is what a domain waits for.
type obstacle struct {
	kind hindrance
	// other is the domain that comes first, or that has the unavailable pod.
	other *domain
	// began is when a soak began.
	began time.Time
}

// obstacle returns what keeps a pod of a domain from being disturbed now.
func (d *domains) obstacle(m desired.Candidate, own *domain) obstacle {
	if takesTurns(m) && d.atWork != own {
		return obstacle{kind: turn, other: d.atWork}
	}
	for _, other := range d.busy {
		if other != own {
			return obstacle{kind: unavailable, other: other}
		}
	}
	if d.lost.pod != "" {
		return obstacle{kind: missing}
	}
	if own.moved > 0 || !takesTurns(m) {
		return obstacle{}
	}
	if began := d.soaksSince(own); d.snap.Now.Before(began.Add(d.soak())) {
		return obstacle{kind: soak, began: began}
	}
	return obstacle{}
}

// soak is the time between two domains.
func (d *domains) soak() time.Duration { return time.Duration(d.spec.SoakSeconds) * time.Second }

// soaksSince returns since when the pods of the other domains have been available, as far as they moved.
func (d *domains) soaksSince(own *domain) (since time.Time) {
	for _, other := range d.inTurn {
		if other != own && other.since.After(since) {
			since = other.since
		}
	}
	return since
}
