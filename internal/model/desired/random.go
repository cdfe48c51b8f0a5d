// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/snapshot"
)

// random returns the State of a set with random names. Surge pods that are deleted again take no other pod's place. In other
// sets any pods above spec.replicas are the surge.
func random(snap *snapshot.Set) *State {
	s := comparison{snap: snap, pods: count(snap)}
	s.held = s.pods.held
	misplaced := s.excess()
	named := s.countNamed()
	s.due = misplaced + named
	s.Surge = min(snap.Limits.MaxSurge, snap.Limits.Replicas, s.due)
	useful, spent := s.countSurge()
	s.StandIns = StandIns(snap)
	needed := min(s.StandIns, max(0, snap.Limits.Replicas-snap.Limits.MaxUnavailable)) // of the others no pod is left to move
	s.Missing = max(0, snap.Limits.Replicas+s.StandIns-s.pods.active-s.pods.held)
	above := useful + spent + max(s.StandIns, s.pods.active+s.pods.held-snap.Limits.Replicas)
	surge := min(s.Surge, max(0, misplaced-s.broken())+named) - above
	unneeded := s.StandIns - needed
	if !snap.GivesBack() {
		needed = max(needed, s.Surge-useful)
	}
	surplus := max(0, s.pods.active-unneeded-needed-snap.Limits.Replicas)
	s.Available = snap.Available()
	if extra := spent + max(0, useful-s.Surge); unneeded+surplus+extra > 0 {
		choose(snap, &s.State, unneeded, surplus, extra)
	}
	s.watch(snap)
	s.findCandidates()
	s.fill(s.pods.short(snap.Current.Name), surge, above)
	return &s.State
}

// comparison compares a set with random names with its wanted state.
type comparison struct {
	State
	snap *snapshot.Set
	pods census
}

// excess counts the pods of each revision that must be replaced. misplaced is how many others may come in their place.
func (s *comparison) excess() (misplaced int) {
	s.Excess, s.Short = map[string]int{}, map[string]int{}
	s.want, s.lacking = s.pods.want, obtainable(s.snap, s.pods.lacking(s.snap))
	for revision := range s.pods.want {
		s.Short[revision] = s.pods.short(revision)
	}
	if s.Short[s.snap.Update.Name] > 0 {
		s.added = added(s.snap)
	}
	if !Frozen(s.snap) {
		misplaced = s.countExcess()
	}
	return misplaced
}

// census holds the numbers of pods of a set with random names.
type census struct {
	// want, have and broken are how many pods of each revision are wanted, exist, and are broken. Pods to be replaced are not
	// counted, because they are deleted; the pods that replace them will be.
	want, have, broken map[string]int
	// active is how many pods are active. held is how many others hold a place: finished ones until they are deleted, and
	// terminating ones whose claims their successor is to use.
	active, held int
}

// count counts the pods of a set with random names.
func count(snap *snapshot.Set) census {
	pods := census{want: make(map[string]int, 2), have: make(map[string]int, 2), broken: make(map[string]int)}
	for revision, n := range snap.CountSteady() {
		pods.active += n
		pods.have[revision] += n
	}
	for r := range snap.Unsteady() {
		switch {
		case r.Surge:
		case r.Active():
			pods.active++
			pods.add(r)
		case holdsPlace(snap, r):
			pods.held++
		}
	}
	p := partition(snap)
	if snap.Current.Template == nil { // none can be created, and the existing ones stay
		p = min(p, pods.have[snap.Current.Name])
	}
	pods.want[snap.Update.Name] = snap.Limits.Replicas - p
	pods.want[snap.Current.Name] += p
	return pods
}

// add counts an active pod by its revision.
func (m *census) add(r *snapshot.Replica) {
	if r.ToReplace() {
		return
	}
	m.have[r.Revision]++
	if r.Broken() && !r.Updating {
		m.broken[r.Revision]++
	}
}

// holdsPlace reports whether a pod that is not active keeps its place for its successor. A finished pod without claims does not if
// its deletion is refused.
func holdsPlace(snap *snapshot.Set, r *snapshot.Replica) bool {
	switch {
	case !r.Terminating:
		return r.Finished && (len(r.Claims) > 0 || !snap.Refused(attempt.OfPod(attempt.Deleting, r.Pod)))
	case len(r.Claims) > 0:
		return slices.ContainsFunc(r.Claims, snapshot.Stays)
	default:
		return mountsClaims(snap, r.Pod)
	}
}

// mountsClaims reports whether a pod of a set with claims mounts any. A cache that is behind may not show the claims.
func mountsClaims(snap *snapshot.Set, pod *corev1.Pod) bool {
	return len(snap.Spec.VolumeClaimTemplates) > 0 && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
}

// countSurge counts the pods that are deleted again.
func (s *comparison) countSurge() (useful, spent int) {
	for r := range s.snap.Unsteady() {
		switch {
		case !r.Surge || r.Pod == nil || r.Terminating:
		case s.Spent(s.snap, r):
			spent++
		default:
			useful++
		}
	}
	return useful, spent
}

// Spent reports whether a surge pod is no longer useful: a user named it, or it is broken at another revision than the one
// at which surge pods are created now. In a pause that may be any.
func (s *State) Spent(snap *snapshot.Set, r *snapshot.Replica) bool {
	return r.Active() && (r.ToReplace() || r.Broken() && !snap.Paused() && r.Revision != comesBackAt(snap, s.lacking))
}

// short returns how many pods of a revision are missing.
func (m *census) short(revision string) int { return max(0, m.want[revision]-m.have[revision]) }

// lacking returns the revision of the next new pod. It is the current one if that lacks pods, because it is known to work,
// or if no other is wanted.
func (m *census) lacking(snap *snapshot.Set) string {
	if m.short(snap.Current.Name) > 0 || m.want[snap.Update.Name] == 0 {
		return snap.Current.Name
	}
	return snap.Update.Name
}

// countExcess records how many pods of each revision must be replaced, and returns how many others may come in their place.
// If no other revision is wanted, excess pods are surplus, not misplaced.
func (s *comparison) countExcess() (misplaced int) {
	for revision, n := range s.pods.have {
		excess := n - s.pods.want[revision]
		if excess <= 0 || revision == s.snap.Update.Name && (!s.snap.Rolling() || s.pods.want[s.snap.Current.Name] == 0) {
			continue
		}
		s.Excess[revision] = excess
		if to := s.destination(s.snap, revision); s.snap.RefusesMoves(to) || !missed(s.snap, revision, to) { // no extra pods for pods that cannot be moved
			continue
		}
		misplaced += min(excess, s.snap.Limits.Replicas-s.pods.want[revision])
	}
	return misplaced
}

// broken returns how many of the pods to be replaced are broken and stay under InPlaceOnly. No extra pod is created for
// those.
func (s *comparison) broken() int {
	if s.snap.Spec.UpdatePolicy() != v1beta1.InPlaceOnlyPod {
		return 0
	}
	n := 0
	for revision, excess := range s.Excess {
		n += min(excess, s.pods.broken[revision])
	}
	return n
}

// missed reports whether moving pods from one revision to another reduces availability. A change that the containers do
// not notice does not, and needs no surge.
func missed(snap *snapshot.Set, from, to string) bool {
	if snap.Limits.MaxSurge == 0 || snap.Spec.UpdatePolicy() == v1beta1.RecreatePod {
		return true
	}
	change, cannot := snap.Change(from, to)
	if cannot != "" { // under InPlaceOnly these pods stay, and extra pods would stay with them
		return snap.Spec.UpdatePolicy() != v1beta1.InPlaceOnlyPod
	}
	return !change.MetadataOnly()
}

// isNamed reports whether a pod is to be replaced because a user named it, or because its node leaves.
func isNamed(snap *snapshot.Set, r *snapshot.Replica) bool {
	return r.Active() && !r.Surge && r.ToReplace() && replaceable(snap, r)
}

// isDoubtful reports whether a pod is to be recreated at its revision, and is missed meanwhile: it serves, and may run other images.
func isDoubtful(snap *snapshot.Set, r *snapshot.Replica) bool {
	return r.ServesUnproven() && !r.Surge && !r.ToReplace() && !Frozen(snap) && snap.Spec.UpdatePolicy() != v1beta1.InPlaceOnlyPod
}

// countNamed returns how many pods are to be replaced because users named them, because their nodes leave, or because they may run other
// images than those of their revision.
func (s *comparison) countNamed() (n int) {
	for r := range s.snap.Unsteady() { // such a pod is not steady
		if isNamed(s.snap, r) || isDoubtful(s.snap, r) && s.Excess[r.Revision] == 0 {
			n++
		}
	}
	return n
}

// findCandidates records the pods that stay and may have to move.
func (s *comparison) findCandidates() {
	most := 0
	for revision := range s.Excess {
		most += s.pods.have[revision]
	}
	s.Candidates = make([]Candidate, 0, most)
	named := map[string]int{}
	look := func(r *snapshot.Replica) {
		switch {
		case s.Goes(r):
		case isNamed(s.snap, r):
			to, later := s.successor(r, named[r.Revision])
			named[r.Revision]++
			s.Candidates = append(s.Candidates, Candidate{Replica: r, To: to, Named: true, Later: later})
		case r.Active() && !r.Surge && !r.ToReplace() && s.Excess[r.Revision] > 0:
			s.Candidates = append(s.Candidates, Candidate{Replica: r, To: s.destination(s.snap, r.Revision)})
		}
	}
	if len(s.Excess) == 0 {
		for r := range s.snap.Unsteady() {
			look(r)
		}
		return
	}
	for i := range s.snap.Replicas {
		look(&s.snap.Replicas[i])
	}
}

// destination returns the revision that surplus pods move to. Strays move to whichever revision is short, and keep their claims
// if they can.
func (s *State) destination(snap *snapshot.Set, from string) string {
	switch from {
	case snap.Update.Name:
		return snap.Current.Name
	case snap.Current.Name:
		return s.lacking
	default:
		return s.next(snap, snap.Known[from].Mounts)
	}
}

// next returns the revision of the next new pod, given which claims it would take over. It is the update revision if that lacks a
// pod and only its pods mount these claims.
func (s *State) next(snap *snapshot.Set, has func(template string) bool) string {
	if slices.ContainsFunc(s.added, has) {
		return snap.Update.Name
	}
	return s.lacking
}

// added returns the names of the claim templates that only the update revision has.
func added(snap *snapshot.Set) []string {
	var names []string
	for _, claim := range snap.Update.Claims {
		if !snap.Current.Mounts(claim.Name) {
			names = append(names, claim.Name)
		}
	}
	return names
}

// claimsOf returns a function that reports whether a replica has a claim of a template.
func claimsOf(snap *snapshot.Set, r *snapshot.Replica) func(template string) bool {
	return func(template string) bool { return r.Claim(identity.ClaimName(snap.Name, template, r.ID)) != nil }
}

// successor returns the revision of the pod that replaces one named by a user, before which as many named ones of its revision come: its
// own, unless only another revision lacks pods. later is true if it is to have that one in the end, although it may come at its own.
func (s *comparison) successor(r *snapshot.Replica, before int) (revision string, later bool) {
	next := s.next(s.snap, claimsOf(s.snap, r))
	if s.snap.Paused() || s.pods.short(r.Revision) > 0 || s.pods.short(next) == 0 {
		lacks := func(other string) bool { return other != r.Revision && s.pods.short(other) > 0 }
		exceeds := !s.snap.Paused() && before >= s.pods.short(r.Revision)
		return r.Revision, exceeds && (lacks(s.snap.Update.Name) || lacks(s.snap.Current.Name))
	}
	return s.guardedAt(s.snap, next), next != r.Revision
}

// fill adds the places that are missing and some of surge: first those at the current revision, which is known to work, then
// those at the update revision. What neither revision lacks is missing because pods of the update revision only stand in. above is how many
// pods are there as surge already.
func (s *comparison) fill(atCurrent, surge, above int) {
	missing := min(Batch, s.Missing)
	atCurrent = max(atCurrent, missing-s.pods.short(s.snap.Update.Name))
	members := s.admitted(s.snap, max(0, missing-atCurrent), emptied(s.snap))
	surge = min(Batch-missing, max(0, surge), max(0, s.moreSurge-members))
	if missing+surge == 0 {
		return
	}
	ids := identities(s.snap, missing, surge)
	addedLast(s.snap, ids[:min(len(ids), missing)])
	for i, id := range ids {
		wanted := s.snap.Update.Name
		if i < atCurrent || s.want[s.snap.Update.Name] == 0 {
			wanted = s.snap.Current.Name
		}
		wanted = comesBackAt(s.snap, wanted)
		if revision, ok := owed(s.snap, replaced(s.snap, id, i)); ok && i < missing {
			wanted = revision
		}
		if s.snap.Paused() && i >= missing {
			wanted = named(s.Candidates, above+i-missing, wanted)
		}
		place := Place{ID: id, Ordinal: -1, Revision: wanted, Wanted: wanted, Surge: i >= missing}
		if i >= atCurrent+members && i < missing && wanted == s.snap.Update.Name {
			place.Revision = s.instead
		}
		s.Places = append(s.Places, place)
	}
}

// named returns the revision of the n-th pod that is to be replaced, or another one if there are not as many. In a pause, surge
// for them is of their own revision.
func named(candidates []Candidate, n int, otherwise string) string {
	for i := range candidates {
		if m := &candidates[i]; m.Named && n == 0 {
			return m.To
		} else if m.Named {
			n--
		}
	}
	return otherwise
}

// replaced returns the identity of the pod that the i-th missing pod replaces in a pause: its own, or another if identities do not come
// back.
func replaced(snap *snapshot.Set, id string, i int) string {
	if _, ok := snap.Replacing[id]; ok || snap.HasClaims() || i >= len(snap.Replacing) {
		return id
	}
	return slices.Sorted(maps.Keys(snap.Replacing))[i]
}
