// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// Join joins pods and claims by identity, in the order of identities. The content of a pod is taken from the last look if
// the pod has not changed since. In a large set almost no pod has, and reading it takes longer than everything else.
func (m *Memory) Join(o *snapshot.Objects) []snapshot.Replica {
	toDelete := map[string]bool{}
	if s := o.Set.Spec.ScaleStrategy; s != nil && o.Set.Spec.PodIdentity != v1beta1.OrdinalIdentity { // whose names come back
		for _, name := range s.PodsToDelete {
			toDelete[name] = true
		}
	}
	minReady := time.Duration(o.Set.Spec.MinReadySeconds) * time.Second
	m.read(o)
	for i := range m.replicas {
		r := &m.replicas[i]
		r.Judgment = snapshot.Judgment{Specified: r.Marked, Surge: r.MadeForSurge}
		if r.Ready && r.Active() { // a terminating pod stays Ready until its containers have ended
			r.Available = podstate.Available(r.ReadySince, minReady, o.Now)
		}
		if len(toDelete) > 0 {
			r.Specified = r.Specified || toDelete[r.Pod.Name] && !r.Replaced
		}
	}
	if len(o.Claims) == 0 {
		return m.replicas
	}
	return m.joinClaims(o)
}

// read brings the remembered content of pods up to date.
func (m *Memory) read(o *snapshot.Objects) {
	shown := make([]bool, len(m.replicas))
	var others []*corev1.Pod
	for _, pod := range o.Pods {
		if i, unchanged := m.at[pod]; unchanged { // told without a look at the pod, which is far away in memory
			shown[i] = true
		} else {
			others = append(others, pod)
		}
	}
	unknown := m.readAgain(o, others, shown)
	if len(unknown) == 0 && !slices.Contains(shown, false) {
		return
	}
	kept := m.replicas[:0]
	for i := range shown {
		if shown[i] {
			kept = append(kept, m.replicas[i])
		}
	}
	clear(m.replicas[len(kept):]) // release the pods that are gone
	m.replicas = merge(kept, firstRead(o, unknown))
	if cap(m.replicas) > 2*len(m.replicas) {
		m.replicas = slices.Clone(m.replicas)
	}
	m.at = make(map[*corev1.Pod]int, len(m.replicas))
	for i := range m.replicas {
		m.at[m.replicas[i].Pod] = i
	}
}

// readAgain brings the content of pods up to date that the cache shows as other objects than before, and returns those that
// are new. shown is set for the others.
func (m *Memory) readAgain(o *snapshot.Objects, pods []*corev1.Pod, shown []bool) (unknown []*corev1.Pod) {
	if len(pods) == 0 {
		return nil
	}
	before := make(map[types.UID]int, len(pods))
	for i := range shown {
		if !shown[i] {
			before[m.replicas[i].Pod.UID] = i
		}
	}
	for _, pod := range pods {
		i, known := before[pod.UID]
		if !known {
			unknown = append(unknown, pod)
			continue
		}
		r := &m.replicas[i]
		delete(m.at, r.Pod)
		m.at[pod], shown[i] = i, true
		if r.Pod.ResourceVersion != pod.ResourceVersion {
			id, ordinal, place := r.ID, r.Ordinal, r.Place
			r.Content = read(pod, &r.Content, o)
			r.ID, r.Ordinal, r.Place = id, ordinal, place
		}
		r.Pod = pod
	}
	return unknown
}

// firstRead returns the content of pods, in the order of their identities.
func firstRead(o *snapshot.Objects, pods []*corev1.Pod) []snapshot.Replica {
	type place struct {
		id      string
		ordinal int
		pod     *corev1.Pod
	}
	places := make([]place, len(pods)) // much smaller than replicas, which would be moved more often
	for i, pod := range pods {
		places[i].id, places[i].ordinal = Identify(o.Set, pod.Name)
		places[i].pod = pod
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(a.id, b.id)) })
	all := make([]snapshot.Replica, len(places))
	for i, p := range places {
		all[i].Content = read(p.pod, nil, o)
		all[i].ID, all[i].Ordinal, all[i].Place = p.id, p.ordinal, placeOf(o.Set, p.id)
	}
	return all
}

// merge merges replicas that are sorted, into the slice of the first ones. A copy of all would be megabytes of garbage at each
// look that shows new pods of a large set.
func merge(a, b []snapshot.Replica) []snapshot.Replica {
	i, j := len(a), len(b)
	all := append(a, b...)
	for k := len(all); j > 0; k-- { // from the end, so that nothing is overwritten before it is moved
		if i > 0 && byIdentity(&all[i-1], &b[j-1]) > 0 {
			i--
			all[k-1] = all[i]
		} else {
			j--
			all[k-1] = b[j]
		}
	}
	return all
}

func byIdentity(a, b *snapshot.Replica) int {
	return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.ID, b.ID))
}

// joinClaims adds claims to the replicas of their identities, and replicas for identities that have only claims.
func (m *Memory) joinClaims(o *snapshot.Objects) []snapshot.Replica {
	all := make(map[string]*snapshot.Replica, len(m.replicas))
	for i := range m.replicas {
		all[m.replicas[i].ID] = &m.replicas[i]
	}
	var bare []*snapshot.Replica
	templates := m.claimTemplates(o)
	for i := range o.Claims {
		claim := &o.Claims[i]
		id, ordinal, ok := identifyClaim(o.Set, templates, claim)
		if !ok {
			continue
		}
		r := all[id]
		if r == nil {
			r = &snapshot.Replica{Content: snapshot.Content{Identity: snapshot.Identity{ID: id, Ordinal: ordinal, Place: placeOf(o.Set, id)}}}
			all[id], bare = r, append(bare, r)
		}
		r.Claims = append(r.Claims, claim)
	}
	unmarked := func(c *corev1.PersistentVolumeClaim) bool { return !snapshot.Surges(c) }
	ordinal := o.Set.Spec.PodIdentity == v1beta1.OrdinalIdentity // whose surge uses claims that a scale-down has left
	for _, r := range all {
		slices.SortFunc(r.Claims, func(a, b *corev1.PersistentVolumeClaim) int { return cmp.Compare(a.Name, b.Name) })
		if r.Surge && !ordinal && slices.ContainsFunc(r.Claims, unmarked) { // a surge pod brings claims of its own; a user has marked this one
			r.Surge = false
		}
	}
	slices.SortFunc(bare, byIdentity)
	rest := make([]snapshot.Replica, len(bare))
	for i, r := range bare {
		r.Surge = !slices.ContainsFunc(r.Claims, unmarked)
		rest[i] = *r
	}
	return merge(slices.Clip(m.replicas), rest)
}
