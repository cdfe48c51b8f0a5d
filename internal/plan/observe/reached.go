// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"time"

	"rollset.dev/rollset/internal/model/snapshot"
)

// reached returns how many pods the set has had at once since spec.replicas was lowered last, at most spec.replicas. Memory
// knows it better than a status that is not written yet. A status that has changed knows better than memory: it was
// written from memory, or by another manager. One that is lost says nothing. If both are lost, the pods that are there count.
func (o *observer) reached() int {
	m := o.memory
	if told := int(o.Set.Status.ReachedReplicas); told != m.toldReached && o.Set.Status.ObservedGeneration > 0 {
		m.reached, m.toldReached = told, told
	}
	if r := o.Set.Spec.Replicas; r != nil { // limits that cannot be resolved are 0, and lower nothing
		m.reached = min(m.reached, int(*r))
	}
	m.placed, m.wanted = 0, o.snap.Limits.Replicas
	if m.reached < m.wanted { // otherwise no more can be reached, and nothing need be counted
		m.placed = o.snap.Placed() + len(o.snap.Leaving) // one that is released had a place until now
	}
	return m.Made(0)
}

// Made remembers that new pods were made beside those of the last look. Some of those may have been deleted for their successors at the
// same time. It returns how many pods the set has had at once.
func (m *Memory) Made(pods int) (reached int) {
	m.reached = max(m.reached, min(m.placed+pods, m.wanted))
	return m.reached
}

// noneSince returns since when no pod has been ready; zero if one is, or if none is wanted. A pod that is gone leaves no trace,
// so memory knows it better than the pods that are there. At the first look, these count.
func (o *observer) noneSince() time.Time {
	m := o.memory
	switch {
	case o.snap.Limits.Replicas == 0, o.snap.Serves():
		m.noneSince = time.Time{}
	case m.noneSince.IsZero() && (m.looked || o.snap.Lacks()): // the pod that is missing may have served until now
		m.noneSince = o.Now
	case m.noneSince.IsZero():
		m.noneSince = o.snap.UnavailableSince()
	}
	m.looked = true
	return m.noneSince
}

// triedCurrent reports whether a pod at the current revision has been there since no pod has been ready.
func (o *observer) triedCurrent() bool {
	there := func(r snapshot.Replica) bool { return r.Active() && r.Revision == o.snap.Current.Name }
	m := o.memory
	m.triedCurrent = !m.noneSince.IsZero() && (m.triedCurrent || slices.ContainsFunc(o.snap.Replicas, there))
	return m.triedCurrent
}
