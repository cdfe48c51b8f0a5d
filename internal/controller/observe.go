// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/claims"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/update/steps"
)

// observe freezes what the view shows into the observation that everything is decided on. Of a spec that cannot be
// understood it holds what can; nothing is decided on that.
func (r *Reconciler) observe(ctx context.Context, v *view, found revision.Resolution) *snapshot.Set {
	v.gone = r.router.TakeGone(v.set.UID)
	o := v.freeze(found)
	maps.Copy(o.Blocked, r.blocked(ctx, v, o))
	r.seeStrangers(ctx, v, o)
	return o
}

// freeze returns the observation but for what is in the way of identities without a pod.
func (v *view) freeze(found revision.Resolution) *snapshot.Set {
	o := &snapshot.Set{
		Name: v.set.Name, UID: v.set.UID, Spec: &v.set.Spec,
		Current: found.Current, Update: found.Update, Rejected: found.Rejected, Verdict: found.Verdict, Unproven: found.Unproven,
		Known:        found.Known,
		FinishedWait: v.memory.attempts.Wait(action.Key{Verb: replacing}, found.Update.Name, "", v.now),
		Preflights:   v.answers(found.Update.Name),
		Refusals:     v.refusals(),
		Orphans:      v.orphans,
		Classes:      v.classes,
		Now:          v.now,
	}
	o.Replicas, o.Leaving = v.ours()
	o.Limits, o.Priorities, o.Ordinals = v.resolved.limits, v.resolved.priorities, v.resolved.ordinals
	o.Issued = v.issued(o)
	v.seeChanges(o)
	v.memory.forgetProofs(o)
	o.Blocked = v.nameless(o)
	o.Rollout = steps.Plan(steps.Input{
		Set: o, Status: &v.set.Status, Promotion: v.set.Annotations[v1alpha1.PromoteAnnotation], WasComplete: found.WasComplete,
	})
	return o
}

// resolved is what a spec says in numbers and selectors.
type resolved struct {
	limits     snapshot.Limits
	priorities snapshot.Priorities
	ordinals   identity.Ordinals
}

func resolveSpec(spec *v1alpha1.RollSetSpec) (r resolved, err error) {
	if r.limits, err = snapshot.ResolveLimits(spec); err != nil {
		return r, err
	}
	if r.priorities, err = snapshot.ResolvePriorities(spec); err != nil {
		return r, err
	}
	start := int32(0)
	if spec.Ordinals != nil {
		start = spec.Ordinals.Start
	}
	r.ordinals, err = identity.NewOrdinals(start, spec.ReserveOrdinals)
	return r, err
}

// replicas joins pods and claims by identity, in the order of identities. What a pod says is taken from the last look if the
// pod has not changed since: of a large set nearly none has, and to read it takes longer than all the rest.
func replicas(v *view) []snapshot.Replica {
	toDelete := map[string]bool{}
	if s := v.set.Spec.ScaleStrategy; s != nil && v.set.Spec.PodIdentity != v1alpha1.OrdinalIdentity { // whose names come back
		for _, name := range s.PodsToDelete {
			toDelete[name] = true
		}
	}
	minReady := time.Duration(v.set.Spec.MinReadySeconds) * time.Second
	places := placesOf(v)
	all := make([]snapshot.Replica, len(places))
	for i, p := range places {
		p.read(&all[i])
	}
	v.memory.keep(all) // before the time and the spec make a difference
	for i := range all {
		r := &all[i]
		if r.Ready && r.Live() { // a pod that is going stays Ready until its containers have ended
			r.Available = podstate.Available(r.ReadySince, minReady, v.now)
		}
		if len(toDelete) > 0 && r.Pod != nil {
			r.Specified = r.Specified || toDelete[r.Pod.Name] && !r.Replaced
		}
	}
	return all
}

// keep remembers what pods said, in the place of what they said before, and where each of them is.
func (m *recollection) keep(all []snapshot.Replica) {
	if !m.areAt(all) {
		m.at = make(map[types.UID]int, len(all))
		for i := range all {
			if pod := all[i].Pod; pod != nil {
				m.at[pod.UID] = i
			}
		}
	}
	if room := cap(m.replicas); room < len(all) || room > 2*len(all) {
		m.replicas = slices.Clone(all)
		return
	}
	replicas := m.replicas[:cap(m.replicas)]
	clear(replicas[copy(replicas, all):]) // nobody needs a pod that is gone
	m.replicas = replicas[:len(all)]
}

// areAt says whether the same pods are where those remembered are.
func (m *recollection) areAt(all []snapshot.Replica) bool {
	if len(all) != len(m.replicas) {
		return false
	}
	for i := range all {
		before, now := m.replicas[i].Pod, all[i].Pod
		if before != now && (before == nil || now == nil || before.UID != now.UID) {
			return false
		}
	}
	return true
}

// place is who has an identity. It is what replicas are sorted as, being so much smaller.
type place struct {
	id      string
	ordinal int
	// place is that of the id in the sequence of a set with random names; -1 if it has none.
	place  int
	pod    *corev1.Pod
	claims []*corev1.PersistentVolumeClaim
	// before is the replica that the pod was at the last look; nil if it is new.
	before *snapshot.Replica
}

// read fills in the replica of a place.
func (p *place) read(r *snapshot.Replica) {
	switch {
	case p.pod == nil:
		r.Surge = !slices.ContainsFunc(p.claims, func(c *corev1.PersistentVolumeClaim) bool { return !snapshot.Surges(c) })
	case p.before != nil && p.before.Pod.ResourceVersion == p.pod.ResourceVersion:
		*r = *p.before
		r.Pod = p.pod
	default:
		*r = newReplica(p.pod, p.before)
	}
	r.ID, r.Ordinal, r.Place, r.Claims = p.id, p.ordinal, p.place, p.claims
}

// placesOf are the places in the order of identities. Pods that were there at the last look are in that order still.
func placesOf(v *view) []place {
	known := make([]place, len(v.memory.replicas))
	var fresh []place
	for _, pod := range v.pods {
		if i, ok := v.memory.at[pod.UID]; ok {
			before := &v.memory.replicas[i]
			known[i] = place{id: before.ID, ordinal: before.Ordinal, place: before.Place, pod: pod, before: before}
			continue
		}
		id, ordinal := identify(v.set, pod.Name)
		fresh = append(fresh, place{id: id, ordinal: ordinal, place: v.placeOf(id), pod: pod})
	}
	known = slices.DeleteFunc(known, func(p place) bool { return p.pod == nil })
	slices.SortFunc(fresh, byIdentity)
	places := merge(known, fresh)
	if len(v.claims) > 0 {
		places = joinClaims(v, places)
		slices.SortFunc(places, byIdentity)
	}
	return places
}

// merge merges places that are sorted.
func merge(a, b []place) []place {
	if len(b) == 0 {
		return a
	}
	all := make([]place, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if byIdentity(a[0], b[0]) <= 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return slices.Concat(all, a, b)
}

func byIdentity(a, b place) int {
	if c := cmp.Compare(a.ordinal, b.ordinal); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// newReplica is what a pod says by itself, whatever the spec and the time. Before is what it said at the last look; nil if it
// was not there.
func newReplica(pod *corev1.Pod, before *snapshot.Replica) snapshot.Replica {
	r := snapshot.Replica{
		Pod:          pod,
		Revision:     interned(pod.Labels[v1alpha1.RevisionLabel]),
		Node:         interned(pod.Spec.NodeName),
		Phase:        interned(pod.Status.Phase),
		Created:      pod.CreationTimestamp.Unix(),
		Scheduled:    podstate.Scheduled(pod),
		Terminating:  podstate.Terminating(pod),
		Finished:     podstate.Finished(pod),
		Surge:        snapshot.Surges(pod),
		Specified:    podstate.SpecifiedDelete(pod),
		Replaced:     pod.Labels[v1alpha1.ReplacedLabel] == "true",
		Restarts:     podstate.Restarts(pod),
		DeletionCost: podstate.DeletionCost(pod),
	}
	r.ReadySince, r.Ready = podstate.ReadySince(pod)
	if r.Live() {
		r.Gate = inplace.GateOf(pod)
		r.InPlace = stateOf(pod, before)
		r.Progress = inplace.Of(pod, nil, r.InPlace, inplace.Sighting{})
	}
	return r
}

// stateOf is the state of a pod's last update in place, which takes longer to read than all the rest and changes less often.
func stateOf(pod *corev1.Pod, before *snapshot.Replica) inplace.State {
	if before != nil && before.Revision == pod.Labels[v1alpha1.RevisionLabel] && before.Pod.Generation <= pod.Generation &&
		before.Pod.Annotations[inplace.StateAnnotation] == pod.Annotations[inplace.StateAnnotation] && !before.InPlace.Empty() {
		return before.InPlace
	}
	s, _ := inplace.StateOf(pod) // what cannot be read counts for nothing
	return s
}

// interned is the same text, in the place where all that are equal to it are: what is compared in every look is in few
// places then.
func interned[T ~string](text T) T { return unique.Make(text).Value() }

// identify returns the identity of a pod. A pod that was adopted under a name that the set would not give goes by its
// whole name.
func identify(set *v1alpha1.RollSet, pod string) (id string, ordinal int) {
	if set.Spec.PodIdentity == v1alpha1.OrdinalIdentity {
		if n, ok := identity.ParseOrdinal(set.Name, pod); ok {
			return strconv.Itoa(n), n
		}
		return pod, -1
	}
	if id, ok := identity.ParseID(set.Name, pod); ok {
		return id, -1
	}
	return pod, -1
}

// joinClaims adds claims to the places of their identities, and places for identities that have only claims.
func joinClaims(v *view, all []place) []place {
	known := make(map[string]int, len(all))
	for i := range all {
		known[all[i].id] = i
	}
	templates := v.claimTemplates()
	for i := range v.claims {
		claim := &v.claims[i]
		id, ordinal, ok := identifyClaim(v.set, templates, claim)
		if !ok {
			continue
		}
		if _, ok := known[id]; !ok {
			known[id] = len(all)
			all = append(all, place{id: id, ordinal: ordinal, place: v.placeOf(id)})
		}
		p := &all[known[id]]
		p.claims = append(p.claims, claim)
	}
	for i := range all {
		slices.SortFunc(all[i].claims, func(a, b *corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
	}
	return all
}

// claimTemplates are the names of the claim templates of the spec, and of all revisions that can be used.
func (v *view) claimTemplates() []string {
	var names []string
	for i := range v.set.Spec.VolumeClaimTemplates {
		names = append(names, v.set.Spec.VolumeClaimTemplates[i].Name)
	}
	for _, object := range v.revisions {
		_, recorded, _ := v.memory.decode(object) // of what cannot be used it says none
		names = append(names, recorded...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// identifyClaim returns the identity that a claim belongs to: by its labels or, if another kind of workload left it
// without or a user made it, by its name and those of the templates.
func identifyClaim(set *v1alpha1.RollSet, templates []string, claim *corev1.PersistentVolumeClaim) (id string, ordinal int, ok bool) {
	key := v1alpha1.InstanceIDLabel
	if set.Spec.PodIdentity == v1alpha1.OrdinalIdentity {
		key = v1alpha1.PodIndexLabel
	}
	_, labeled := claim.Labels[v1alpha1.SetLabel]
	if id = claim.Labels[key]; id == "" || !labeled {
		id, _ = claims.IDOf(set.Name, templates, claim.Name)
	}
	known, ordinal := identify(set, set.Name+"-"+id)
	return id, ordinal, known == id // else nothing that we would write
}
