// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/internal/model/snapshot"
)

// homes finds the failure domains of pods that are gone.
type homes struct{ *observer }

// vacated returns the failure domains of pods that are gone and have no successor yet. A pod with a random name and no claims has
// a successor of another name: then as many are vacated as pods are missing.
func (o homes) vacated() map[string]snapshot.Domain {
	m, spec := o.memory, o.snap.Domains()
	if spec == nil {
		m.homes, m.homesKey, m.served = nil, "", nil
		return nil
	}
	o.remember()
	if m.homesKey != spec.LabelKey {
		m.homes, m.homesKey = nil, spec.LabelKey
	}
	homes, there := make(map[string]snapshot.Domain, len(o.snap.Replicas)), make(map[string]bool, len(o.snap.Replicas))
	surplus := o.leaveNoPlace()
	for i := range o.snap.Replicas {
		r := &o.snap.Replicas[i]
		if r.Pod == nil || r.Surge {
			continue
		}
		there[r.ID] = true
		if home, known := o.home(r, spec.LabelKey); known && !surplus[r] {
			homes[r.ID] = home
		}
	}
	gone := o.leftWithout(there)
	vacated := make(map[string]snapshot.Domain, len(gone))
	for _, id := range gone {
		vacated[id], homes[id] = m.homes[id], m.homes[id]
	}
	m.homes = homes
	return vacated
}

// leaveNoPlace returns the terminating pods with random names whose places a scale-down did without: those beyond the pods that
// are missing now, which were deleted first, and those that were among them at the last look.
func (o homes) leaveNoPlace() map[*snapshot.Replica]bool {
	surplus := map[*snapshot.Replica]bool{}
	if o.snap.Ordinal() {
		return surplus
	}
	var terminating []*snapshot.Replica
	for r := range o.snap.Unsteady() {
		if !r.Terminating || r.Surge {
			continue
		}
		if _, had := o.memory.homes[r.ID]; had || o.memory.homes == nil {
			terminating = append(terminating, r)
		} else {
			surplus[r] = true
		}
	}
	slices.SortStableFunc(terminating, snapshot.LastDeletedFirst)
	missing := min(len(terminating), max(0, o.snap.Limits.Replicas-o.snap.Placed()))
	for _, r := range terminating[missing:] {
		surplus[r] = true
	}
	return surplus
}

// remember records which pods have been available at any look. A pod does not show this once it is ready again.
func (o homes) remember() {
	served := make(map[types.UID]bool, len(o.snap.Replicas))
	for i := range o.snap.Replicas {
		if r := &o.snap.Replicas[i]; r.Pod != nil && (r.Available || o.memory.served[r.Pod.UID]) {
			r.Served, served[r.Pod.UID] = true, true
		}
	}
	o.memory.served = served
}

// home returns the failure domain of a pod: where it is, or, before it is available, where its predecessor was.
func (o homes) home(r *snapshot.Replica, key string) (home snapshot.Domain, known bool) {
	if !r.Available {
		home, known, _ = r.Home(key)
		return home, known
	}
	return snapshot.DomainOf(r.Pod, key), r.Node != ""
}

// leftWithout returns the identities that had a pod at the last look, have none now, and are to have one again.
func (o homes) leftWithout(there map[string]bool) (gone []string) {
	for id := range o.memory.homes {
		if !there[id] && (!o.snap.Ordinal() || o.inUse(id)) {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	return gone[:min(max(0, o.snap.Limits.Replicas-o.snap.Placed()), len(gone))]
}

// inUse reports whether the set uses the ordinal that an identity stands for.
func (o homes) inUse(id string) bool {
	ordinal, err := strconv.Atoi(id)
	if err != nil {
		return false
	}
	_, used := o.snap.InUse(ordinal)
	return used
}
