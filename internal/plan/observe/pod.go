// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// read returns the content of a pod, but for its identity. before is its content at the last look; nil if the pod is new.
func read(pod *corev1.Pod, before *snapshot.Content, o *snapshot.Objects) snapshot.Content {
	c := snapshot.Content{
		Pod:          pod,
		Revision:     interned(pod.Labels[v1beta1.RevisionLabel]),
		Node:         interned(pod.Spec.NodeName),
		Phase:        interned(pod.Status.Phase),
		Created:      pod.CreationTimestamp.Unix(),
		Scheduled:    podstate.Scheduled(pod),
		Terminating:  podstate.Terminating(pod),
		Finished:     podstate.Finished(pod),
		Restarts:     podstate.Restarts(pod),
		DeletionCost: podstate.DeletionCost(pod),
		Marks: snapshot.Marks{
			MadeForSurge: snapshot.Surges(pod),
			Marked:       snapshot.SpecifiedDelete(pod),
			Replaced:     pod.Labels[v1beta1.ReplacedLabel] == "true",
			Unselected:   !o.Selector.Matches(labels.Set(pod.Labels)),
		},
	}
	c.ReadySince, c.Ready = podstate.ReadySince(pod)
	c.Unreachable = !c.Ready && podstate.Unreachable(pod)
	if !c.Terminating && !c.Finished {
		c.Gate = inplace.GateOf(pod)
		c.InPlace = stateOf(pod, before)
		c.Shown = inplace.Of(pod, nil, c.InPlace, inplace.Sighting{})
	}
	return c
}

// stateOf returns the state of a pod's last update in place. It takes longer to read than everything else, and rarely
// changes.
func stateOf(pod *corev1.Pod, before *snapshot.Content) inplace.State {
	if before != nil && before.Revision == pod.Labels[v1beta1.RevisionLabel] && before.Pod.Generation <= pod.Generation &&
		before.Pod.Annotations[inplace.StateAnnotation] == pod.Annotations[inplace.StateAnnotation] && !before.InPlace.Empty() {
		return before.InPlace
	}
	s, _ := inplace.StateOf(pod) // an unreadable state counts for nothing
	return s
}

// interned returns the same text, shared with all equal ones. So the texts that every look compares are in few places in
// memory.
func interned[T ~string](text T) T { return unique.Make(text).Value() }
