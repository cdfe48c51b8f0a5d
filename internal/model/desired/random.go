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
func random(o *snapshot.Set) *State {
	pods := count(o)
	s, misplaced := excess(o, pods)
	named := countNamed(o)
	s.Surge = min(o.Limits.MaxSurge, o.Limits.Replicas, misplaced+named)
	standIns := s.standIns(o, pods)
	s.Missing = max(0, o.Limits.Replicas+standIns-pods.active-pods.held)
	useful, spent := s.countSurge(o)
	above := useful + spent + max(standIns, pods.active+pods.held-o.Limits.Replicas)
	surge := min(s.Surge, max(0, misplaced-s.broken(o, pods))+named) - above
	surplus := max(0, pods.active-o.Limits.Replicas)
	if !o.GivesBack() {
		surplus = max(0, surplus-max(0, s.Surge-useful))
	}
	s.Available = o.Available()
	if extra := spent + max(0, useful-s.Surge); surplus+extra > 0 {
		s.choose(o, surplus, extra)
	}
	s.watch(o)
	s.findCandidates(o, pods)
	s.fill(o, pods.short(o.Current.Name), surge, above)
	return s
}

// standIns returns how many of the pods without a mark of surge are no members: those at the update revision that are not available,
// and that the rollout could not have if it had no surge. Otherwise a lost pod had no successor because of a bad template.
func (s *State) standIns(o *snapshot.Set, pods census) int {
	if o.GivesBack() || !guarded(o) || yielded(o, yieldsAt(o)) {
		return 0
	}
	return min(o.Limits.MaxSurge, max(0, pods.starting-o.Limits.MaxUnavailable))
}

// excess returns a State that holds only how many pods of each revision must be replaced. misplaced is how many others may
// come in their place.
func excess(o *snapshot.Set, pods census) (s *State, misplaced int) {
	s = &State{Excess: map[string]int{}, Short: map[string]int{}, want: pods.want, lacking: obtainable(o, pods.lacking(o))}
	for revision := range pods.want {
		s.Short[revision] = pods.short(revision)
	}
	if s.Short[o.Update.Name] > 0 {
		s.added = added(o)
	}
	if !Frozen(o) {
		misplaced = s.countExcess(o, pods)
	}
	if o.RefusesUpdate() {
		misplaced = 0 // no extra pods for pods that cannot be moved
	}
	return s, misplaced
}

// census holds the numbers of pods of a set with random names.
type census struct {
	// want, have and broken are how many pods of each revision are wanted, exist, and are broken. Pods to be replaced are not
	// counted, because they are deleted; the pods that replace them will be.
	want, have, broken map[string]int
	// active is how many pods are active. held is how many others hold a place: finished ones until they are deleted, and
	// terminating ones whose claims their successor is to use.
	active, held int
	// starting is how many active pods at the update revision are not available.
	starting int
}

// count counts the pods of a set with random names.
func count(o *snapshot.Set) census {
	pods := census{want: make(map[string]int, 2), have: make(map[string]int, 2), broken: make(map[string]int)}
	for revision, n := range o.CountSteady() {
		pods.active += n
		pods.have[revision] += n
	}
	for r := range o.Unsteady() {
		switch {
		case r.Surge:
		case r.Active():
			pods.active++
			pods.add(o, r)
		case holdsPlace(o, r):
			pods.held++
		}
	}
	p := partition(o)
	if o.Current.Template == nil { // none can be created, and the existing ones stay
		p = min(p, pods.have[o.Current.Name])
	}
	pods.want[o.Update.Name] = o.Limits.Replicas - p
	pods.want[o.Current.Name] += p
	return pods
}

// add counts an active pod by its revision.
func (m *census) add(o *snapshot.Set, r *snapshot.Replica) {
	if r.ToReplace() {
		return
	}
	m.have[r.Revision]++
	if r.Revision == o.Update.Name && !r.Available {
		m.starting++
	}
	if r.Broken() && !r.Updating {
		m.broken[r.Revision]++
	}
}

// holdsPlace reports whether a pod that is not active keeps its place for its successor. A finished pod without claims does not if
// its deletion is refused.
func holdsPlace(o *snapshot.Set, r *snapshot.Replica) bool {
	switch {
	case !r.Terminating:
		return r.Finished && (len(r.Claims) > 0 || !o.Refused(attempt.OfPod(attempt.Deleting, r.Pod)))
	case len(r.Claims) > 0:
		return slices.ContainsFunc(r.Claims, snapshot.Stays)
	default:
		return mountsClaims(o, r.Pod)
	}
}

// mountsClaims reports whether a pod of a set with claims mounts any. A cache that is behind may not show the claims.
func mountsClaims(o *snapshot.Set, pod *corev1.Pod) bool {
	return len(o.Spec.VolumeClaimTemplates) > 0 && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
}

// countSurge counts the pods that are deleted again.
func (s *State) countSurge(o *snapshot.Set) (useful, spent int) {
	for r := range o.Unsteady() {
		switch {
		case !r.Surge || r.Pod == nil || r.Terminating:
		case s.Spent(o, r):
			spent++
		default:
			useful++
		}
	}
	return useful, spent
}

// Spent reports whether a surge pod is no longer useful: a user named it, or it is broken at another revision than the one
// at which surge pods are created now. In a pause that may be any.
func (s *State) Spent(o *snapshot.Set, r *snapshot.Replica) bool {
	return r.Active() && (r.ToReplace() || r.Broken() && !o.Paused() && r.Revision != comesBackAt(o, s.lacking))
}

// short returns how many pods of a revision are missing.
func (m *census) short(revision string) int { return max(0, m.want[revision]-m.have[revision]) }

// lacking returns the revision of the next new pod. It is the current one if that lacks pods, because it is known to work,
// or if no other is wanted.
func (m *census) lacking(o *snapshot.Set) string {
	if m.short(o.Current.Name) > 0 || m.want[o.Update.Name] == 0 {
		return o.Current.Name
	}
	return o.Update.Name
}

// countExcess records how many pods of each revision must be replaced, and returns how many others may come in their place.
// If no other revision is wanted, excess pods are surplus, not misplaced.
func (s *State) countExcess(o *snapshot.Set, pods census) (misplaced int) {
	for revision, n := range pods.have {
		excess := n - pods.want[revision]
		if excess <= 0 || revision == o.Update.Name && (!o.Rolling() || pods.want[o.Current.Name] == 0) {
			continue
		}
		s.Excess[revision] = excess
		if !s.missed(o, revision, s.destination(o, revision)) {
			continue
		}
		misplaced += min(excess, o.Limits.Replicas-pods.want[revision])
	}
	return misplaced
}

// broken returns how many of the pods to be replaced are broken and stay under InPlaceOnly. No extra pod is created for
// those.
func (s *State) broken(o *snapshot.Set, pods census) int {
	if o.Spec.UpdatePolicy() != v1beta1.InPlaceOnlyPod {
		return 0
	}
	n := 0
	for revision, excess := range s.Excess {
		n += min(excess, pods.broken[revision])
	}
	return n
}

// missed reports whether moving pods from one revision to another reduces availability. A change that the containers do
// not notice does not, and needs no surge.
func (s *State) missed(o *snapshot.Set, from, to string) bool {
	if o.Limits.MaxSurge == 0 || o.Spec.UpdatePolicy() == v1beta1.RecreatePod {
		return true
	}
	change, cannot := o.Change(from, to)
	if cannot != "" { // under InPlaceOnly these pods stay, and extra pods would stay with them
		return o.Spec.UpdatePolicy() != v1beta1.InPlaceOnlyPod
	}
	return !change.MetadataOnly()
}

// isNamed reports whether a pod is to be replaced because a user named it, or because its node leaves.
func isNamed(o *snapshot.Set, r *snapshot.Replica) bool {
	return r.Active() && !r.Surge && r.ToReplace() && replaceable(o, r)
}

// countNamed returns how many pods are to be replaced because users named them, or because their nodes leave.
func countNamed(o *snapshot.Set) (n int) {
	for r := range o.Unsteady() { // a named pod is not steady
		if isNamed(o, r) {
			n++
		}
	}
	return n
}

// findCandidates records the pods that stay and may have to move.
func (s *State) findCandidates(o *snapshot.Set, pods census) {
	most := 0
	for revision := range s.Excess {
		most += pods.have[revision]
	}
	s.Candidates = make([]Candidate, 0, most)
	look := func(r *snapshot.Replica) {
		switch {
		case s.Goes(r):
		case isNamed(o, r):
			s.Candidates = append(s.Candidates, Candidate{Replica: r, To: s.successor(o, r, pods), Named: true})
		case r.Active() && !r.Surge && !r.ToReplace() && s.Excess[r.Revision] > 0:
			s.Candidates = append(s.Candidates, Candidate{Replica: r, To: s.destination(o, r.Revision)})
		}
	}
	if len(s.Excess) == 0 {
		for r := range o.Unsteady() {
			look(r)
		}
		return
	}
	for i := range o.Replicas {
		look(&o.Replicas[i])
	}
}

// destination returns the revision that surplus pods move to. Strays move to whichever revision is short, and keep their claims
// if they can.
func (s *State) destination(o *snapshot.Set, from string) string {
	switch from {
	case o.Update.Name:
		return o.Current.Name
	case o.Current.Name:
		return s.lacking
	default:
		return s.next(o, o.Known[from].Mounts)
	}
}

// next returns the revision of the next new pod, given which claims it would take over. It is the update revision if that lacks a
// pod and only its pods mount these claims.
func (s *State) next(o *snapshot.Set, has func(template string) bool) string {
	if slices.ContainsFunc(s.added, has) {
		return o.Update.Name
	}
	return s.lacking
}

// added returns the names of the claim templates that only the update revision has.
func added(o *snapshot.Set) []string {
	var names []string
	for _, claim := range o.Update.Claims {
		if !o.Current.Mounts(claim.Name) {
			names = append(names, claim.Name)
		}
	}
	return names
}

// claimsOf returns a function that reports whether a replica has a claim of a template.
func claimsOf(o *snapshot.Set, r *snapshot.Replica) func(template string) bool {
	return func(template string) bool { return r.Claim(identity.ClaimName(o.Name, template, r.ID)) != nil }
}

// successor returns the revision of the pod that replaces one named by a user: its own, unless only another revision lacks
// pods.
func (s *State) successor(o *snapshot.Set, r *snapshot.Replica, pods census) string {
	next := s.next(o, claimsOf(o, r))
	if o.Paused() || pods.short(r.Revision) > 0 || pods.short(next) == 0 {
		return r.Revision
	}
	return s.guardedAt(o, next)
}

// fill adds the places that are missing and some of surge: first those at the current revision, which is known to work, then
// those at the update revision. above is how many pods are there as surge already.
func (s *State) fill(o *snapshot.Set, atCurrent, surge, above int) {
	missing := min(Batch, s.Missing)
	if s.want[o.Update.Name] == 0 {
		atCurrent = missing
	}
	members := s.admitted(o, max(0, missing-atCurrent), emptied(o))
	surge = min(Batch-missing, max(0, surge), max(0, s.moreSurge-members))
	if missing+surge == 0 {
		return
	}
	ids := identities(o, missing, surge)
	addedLast(o, ids[:min(len(ids), missing)])
	for i, id := range ids {
		wanted := o.Update.Name
		if i < atCurrent || s.want[o.Update.Name] == 0 {
			wanted = o.Current.Name
		}
		wanted = comesBackAt(o, wanted)
		if owed, ok := replaced(o, id, i); ok && i < missing && o.Paused() {
			wanted = owed
		}
		if o.Paused() && i >= missing {
			wanted = s.named(above+i-missing, wanted)
		}
		place := Place{ID: id, Ordinal: -1, Revision: wanted, Wanted: wanted, Surge: i >= missing}
		if i >= atCurrent+members && i < missing && wanted == o.Update.Name {
			place.Revision = s.instead
		}
		s.Places = append(s.Places, place)
	}
}

// named returns the revision of the n-th pod that is to be replaced, or another one if there are not as many. In a pause, surge
// for them is of their own revision.
func (s *State) named(n int, otherwise string) string {
	for i := range s.Candidates {
		if m := &s.Candidates[i]; m.Named && n == 0 {
			return m.To
		} else if m.Named {
			n--
		}
	}
	return otherwise
}

// replaced returns the revision of the pod that the i-th missing pod replaces in a pause: of the same identity, or of another if
// identities do not come back.
func replaced(o *snapshot.Set, id string, i int) (revision string, ok bool) {
	if revision, ok = o.Replacing[id]; ok || o.HasClaims() || i >= len(o.Replacing) {
		return revision, ok
	}
	return o.Replacing[slices.Sorted(maps.Keys(o.Replacing))[i]], true
}
