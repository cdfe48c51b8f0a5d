// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package rank orders pods by how little is lost with them. Scaling down and updating use the same order, so that a
// pod's chances can be read in one place.
//
// The rule, first to go first: not scheduled; Pending before Unknown before Running; not ready; lower deletion cost; on
// the node with more pods of the set; ready for a shorter time, in powers of two; more restarts; newer. It is the order
// of the ReplicaSet controller (k8s.io/kubernetes/pkg/controller, ActivePodsWithRanks), names breaking ties.
package rank

import (
	"cmp"
	"math/bits"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/observed"
)

// Compare is negative if a is to go before b, positive if after, and never 0 for different pods.
type Compare func(a, b *observed.Replica) int

// First chains comparisons: each decides what those before it leave undecided.
func First(comparisons ...Compare) Compare {
	return func(a, b *observed.Replica) int {
		for _, compare := range comparisons {
			if c := compare(a, b); c != 0 {
				return c
			}
		}
		return 0
	}
}

// LeastLoss is the order of the package comment for the live pods of a set. A pod is compared many times, so what is
// compared is looked up once for each, and not at all if there is nothing to compare.
func LeastLoss(o *observed.Set) Compare {
	var losses map[*observed.Replica]loss
	return func(a, b *observed.Replica) int {
		if losses == nil {
			losses = lossesOf(o)
		}
		x, y := losses[a], losses[b]
		if c := cmp.Or(
			cmp.Compare(x.progress, y.progress),
			cmp.Compare(a.DeletionCost, b.DeletionCost),
			cmp.Compare(y.crowd, x.crowd),
			cmp.Compare(x.readiness, y.readiness),
			cmp.Compare(b.Restarts, a.Restarts),
			cmp.Compare(y.created, x.created),
		); c != 0 {
			return c
		}
		return cmp.Compare(a.ID, b.ID)
	}
}

func lossesOf(o *observed.Set) map[*observed.Replica]loss {
	crowds := crowds(o)
	losses := make(map[*observed.Replica]loss, len(o.Replicas))
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Live() {
			losses[r] = lossOf(r, crowds[r.Pod.Spec.NodeName], o.Now)
		}
	}
	return losses
}

// loss is what a pod is compared by, as far as its replica does not say it.
type loss struct {
	// progress is how far the pod has come: unscheduled, pending, of unknown phase, running, ready.
	progress int
	// crowd is how many pods of the set are on the pod's node.
	crowd int
	// readiness is how long the pod has been ready, by its logarithm to base two, so that pods that became ready in one
	// go do not crowd out what is compared after this.
	readiness int
	created   int64
}

func lossOf(r *observed.Replica, crowd int, now time.Time) loss {
	l := loss{crowd: crowd, readiness: -1, created: r.Pod.CreationTimestamp.Unix()}
	if r.Scheduled {
		l.progress += 8
	}
	switch r.Pod.Status.Phase {
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
		l.readiness = bits.Len64(uint64(max(0, now.Sub(r.ReadySince)/time.Second)))
	}
	return l
}

// crowds counts the live pods of a set on each node.
func crowds(o *observed.Set) map[string]int {
	onNode := map[string]int{}
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Live() && r.Pod.Spec.NodeName != "" {
			onNode[r.Pod.Spec.NodeName]++
		}
	}
	return onNode
}

// HighestFirst puts higher ordinals first.
func HighestFirst(a, b *observed.Replica) int { return cmp.Compare(b.Ordinal, a.Ordinal) }
