// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/podstate"
)

// settles is how long a node must have been leaving before its pods are replaced. A node that is cordoned and kept again all the
// time causes no writes.
const settles = 2 * time.Second

// markLeaving notes which pods are on nodes that leave, if the set asks for it. A pod whose successor could get the same node
// stays. It also notes whether every node leaves or is not ready.
func (o *observer) markLeaving() {
	spec := &o.Set.Spec
	if len(o.Nodes) == 0 || !spec.ReplacesOnDrain() || spec.Template.Spec.NodeName != "" {
		o.memory.leaving = nil
		return
	}
	o.snap.Nowhere = true
	keys, leaving, since := spec.LeavingTaints(), map[string]*corev1.Node{}, map[string]time.Time{}
	for _, node := range o.Nodes {
		switch {
		case podstate.Leaving(node, keys) != "":
			leaving[node.Name], since[node.Name] = node, o.leavingSince(node.Name)
		case podstate.NodeReady(node):
			o.snap.Nowhere = false
		}
	}
	o.memory.leaving = since
	for i := range o.snap.Replicas {
		r := &o.snap.Replicas[i]
		node := leaving[r.Node]
		if node == nil || podstate.ComesBack(&r.Pod.Spec, node, keys) {
			continue
		}
		if left := since[node.Name].Add(settles).Sub(o.Now); left > 0 {
			o.snap.NodesSettleIn = action.Sooner(o.snap.NodesSettleIn, left)
		} else {
			r.Leaving = podstate.Leaving(node, keys)
		}
	}
}

// leavingSince returns since when a node has been leaving, according to earlier looks at the set. For the first look it is the zero
// time.
func (o *observer) leavingSince(node string) time.Time {
	since, known := o.memory.leaving[node]
	if o.memory.leaving == nil || known && !since.After(o.Now) {
		return since
	}
	return o.Now
}
