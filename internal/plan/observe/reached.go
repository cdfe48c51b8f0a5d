// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

// reached returns how many pods the set has had at once since spec.replicas was lowered last, at most spec.replicas. Memory
// knows it better than a status that is not written yet. A status that has changed knows better than memory: it was
// written from memory, or by another manager. If both are lost, the pods that are there count.
func (o *observer) reached() int {
	m := o.memory
	if told := int(o.Set.Status.ReachedReplicas); told != m.toldReached {
		m.reached, m.toldReached = told, told
	}
	if r := o.Set.Spec.Replicas; r != nil { // limits that cannot be resolved are 0, and lower nothing
		m.reached = min(m.reached, int(*r))
	}
	if m.reached < o.out.Limits.Replicas {
		placed := o.out.Placed() + len(o.out.Leaving) // one that is released had a place until now
		m.reached = max(m.reached, min(placed, o.out.Limits.Replicas))
	}
	return m.reached
}
