// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Join joins pods and claims by identity, in the order of identities. The content of a pod is taken from the last look if
// the pod has not changed since. In a large set almost no pod has, and reading it takes longer than everything else.
func (m *Memory) Join(o *snapshot.Objects) []snapshot.Replica {
	toDelete := map[string]bool{}
	if s := o.Set.Spec.ScaleStrategy; s != nil && o.Set.Spec.PodIdentity != v1alpha1.OrdinalIdentity { // whose names come back
		for _, name := range s.PodsToDelete {
			toDelete[name] = true
		}
	}
	minReady := time.Duration(o.Set.Spec.MinReadySeconds) * time.Second
	places := m.places(o)
	all := make([]snapshot.Replica, len(places))
	for i, p := range places {
		p.read(&all[i])
	}
	m.keep(all) // before the time and the spec make a difference
	for i := range all {
		r := &all[i]
		if r.Ready && r.Active() { // a terminating pod stays Ready until its containers have ended
			r.Available = podstate.Available(r.ReadySince, minReady, o.Now)
		}
		if len(toDelete) > 0 && r.Pod != nil {
			r.Specified = r.Specified || toDelete[r.Pod.Name] && !r.Replaced
		}
	}
	return all
}

// keep remembers the content of pods in place of the last one, and where each of them is.
func (m *Memory) keep(all []snapshot.Replica) {
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
	clear(replicas[copy(replicas, all):]) // release the pods that are gone
	m.replicas = replicas[:len(all)]
}

// areAt reports whether the same pods are where the remembered ones are.
func (m *Memory) areAt(all []snapshot.Replica) bool {
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

// place is the owner of an identity. It is sorted instead of replicas because it is much smaller.
type place struct {
	id      string
	ordinal int
	// place is the place of the id in the sequence of a set with random names; -1 if it has none.
	place  int
	pod    *corev1.Pod
	claims []*corev1.PersistentVolumeClaim
	// before is the replica of the pod at the last look; nil if the pod is new.
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

// places returns the places in the order of identities. Pods of the last look are already in that order.
func (m *Memory) places(o *snapshot.Objects) []place {
	known := make([]place, len(m.replicas))
	var fresh []place
	for _, pod := range o.Pods {
		if i, ok := m.at[pod.UID]; ok {
			before := &m.replicas[i]
			known[i] = place{id: before.ID, ordinal: before.Ordinal, place: before.Place, pod: pod, before: before}
			continue
		}
		id, ordinal := Identify(o.Set, pod.Name)
		fresh = append(fresh, place{id: id, ordinal: ordinal, place: placeOf(o.Set, id), pod: pod})
	}
	known = slices.DeleteFunc(known, func(p place) bool { return p.pod == nil })
	slices.SortFunc(fresh, byIdentity)
	places := merge(known, fresh)
	if len(o.Claims) > 0 {
		places = m.joinClaims(o, places)
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

// joinClaims adds claims to the places of their identities, and places for identities that have only claims.
func (m *Memory) joinClaims(o *snapshot.Objects, all []place) []place {
	known := make(map[string]int, len(all))
	for i := range all {
		known[all[i].id] = i
	}
	templates := m.claimTemplates(o)
	for i := range o.Claims {
		claim := &o.Claims[i]
		id, ordinal, ok := identifyClaim(o.Set, templates, claim)
		if !ok {
			continue
		}
		if _, ok := known[id]; !ok {
			known[id] = len(all)
			all = append(all, place{id: id, ordinal: ordinal, place: placeOf(o.Set, id)})
		}
		p := &all[known[id]]
		p.claims = append(p.claims, claim)
	}
	for i := range all {
		slices.SortFunc(all[i].claims, func(a, b *corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
	}
	return all
}
