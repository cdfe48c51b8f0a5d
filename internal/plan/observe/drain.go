// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// markLeaving notes which pods are on nodes that leave, if the set asks for it. A pod whose successor could get the same node
// stays. It reports whether every node leaves or is not ready.
func (o *Objects) markLeaving(all []snapshot.Replica) (nowhere bool) {
	spec := &o.Set.Spec
	if len(o.Nodes) == 0 || !spec.ReplacesOnDrain() || spec.Template.Spec.NodeName != "" {
		return false
	}
	nowhere = true
	keys, leaving := spec.LeavingTaints(), map[string]*corev1.Node{}
	for _, node := range o.Nodes {
		switch {
		case podstate.Leaving(node, keys) != "":
			leaving[node.Name] = node
		case podstate.NodeReady(node):
			nowhere = false
		}
	}
	if len(leaving) == 0 {
		return nowhere
	}
	for i := range all {
		r := &all[i]
		if node := leaving[r.Node]; node != nil && !podstate.ComesBack(&r.Pod.Spec, node, keys) {
			r.Leaving = podstate.Leaving(node, keys)
		}
	}
	return nowhere
}
