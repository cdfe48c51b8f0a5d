// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/snapshot"
)

// The rule of loss, first to go first: not scheduled; Pending before Unknown before Running; not ready; on a node that leaves; lower
// deletion cost; on the node with more pods of the set; ready for a shorter time, in powers of two; more restarts; newer. But for
// the nodes that leave it is the order of the ReplicaSet controller (k8s.io/kubernetes/pkg/controller, ActivePodsWithRanks), names
// breaking ties. Scaling down and updating use the same order, so that a pod's chances can be read in one place.

// Loss holds the values by which pods are compared for deletion. A pod is compared many times, so they are looked up once.
type Loss struct {
	// progress is how far the pod has come: unscheduled, pending, of unknown phase, running, ready.
	progress int8
	// leaving is 1 if the pod's node leaves, and 0 otherwise.
	leaving int8
	// readiness is the base-two logarithm of how long the pod has been ready, so that pods that became ready together are
	// compared by what follows.
	readiness int8
	cost      int32
	// crowd is how many pods of the set are on the pod's node.
	crowd    int32
	restarts int32
	created  int64
	id       string
}

// Losses returns a function that computes the Loss of each active pod of a set.
func Losses(snap *snapshot.Set) func(*snapshot.Replica) Loss {
	crowds := crowds(snap)
	return func(r *snapshot.Replica) Loss { return lossOf(r, crowds[r.Node], snap.Now) }
}

// LeastFirst compares by the rule of loss: negative if a goes before b, positive if after, and never 0 for
// different pods.
func LeastFirst(a, b *Loss) int {
	switch {
	case a.progress != b.progress:
		return cmp.Compare(a.progress, b.progress)
	case a.leaving != b.leaving:
		return cmp.Compare(b.leaving, a.leaving)
	case a.cost != b.cost:
		return cmp.Compare(a.cost, b.cost)
	case a.crowd != b.crowd:
		return cmp.Compare(b.crowd, a.crowd)
	case a.readiness != b.readiness:
		return cmp.Compare(a.readiness, b.readiness)
	case a.restarts != b.restarts:
		return cmp.Compare(b.restarts, a.restarts)
	case a.created != b.created:
		return cmp.Compare(b.created, a.created)
	default:
		return cmp.Compare(a.id, b.id)
	}
}

// SortByLoss sorts active pods of a set by the rule of loss.
func SortByLoss(snap *snapshot.Set, pods []*snapshot.Replica) {
	type ranked struct {
		loss Loss
		pod  *snapshot.Replica
	}
	losses := Losses(snap)
	sorted := make([]*ranked, len(pods))
	for i, r := range pods {
		sorted[i] = &ranked{loss: losses(r), pod: r}
	}
	slices.SortFunc(sorted, func(a, b *ranked) int { return LeastFirst(&a.loss, &b.loss) })
	for i, r := range sorted {
		pods[i] = r.pod
	}
}

func lossOf(r *snapshot.Replica, crowd int32, now time.Time) Loss {
	l := Loss{
		cost: r.DeletionCost, crowd: crowd, readiness: -1, restarts: r.Restarts, created: r.Created, id: r.ID,
	}
	if r.Leaving != "" {
		l.leaving = 1
	}
	if r.Scheduled {
		l.progress += 8
	}
	switch r.Phase {
	case corev1.PodPending, "":
	case corev1.PodUnknown:
		l.progress += 2
	default:
		l.progress += 4
	}
	if r.Ready {
		l.progress++
	}
	if !r.ReadySince.IsZero() {
		l.readiness = int8(bits.Len64(uint64(max(0, now.Sub(r.ReadySince)/time.Second))))
	}
	return l
}

// crowds counts the active pods of a set on each node.
func crowds(snap *snapshot.Set) map[string]int32 {
	onNode := map[string]int32{}
	for i := range snap.Replicas {
		if r := &snap.Replicas[i]; r.Active() && r.Node != "" {
			onNode[r.Node]++
		}
	}
	return onNode
}

// HighestFirst puts higher ordinals first.
func HighestFirst(a, b *snapshot.Replica) int { return cmp.Compare(b.Ordinal, a.Ordinal) }
