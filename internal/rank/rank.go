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
	"strings"
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

// LeastLoss is the order of the package comment for the live pods of a set.
func LeastLoss(o *observed.Set) Compare {
	return First(
		UnscheduledFirst,
		PendingFirst,
		UnreadyFirst,
		CheapestFirst,
		CrowdedFirst(o),
		LatestReadyFirst(o.Now),
		MostRestartsFirst,
		NewestFirst,
		ByName,
	)
}

// UnscheduledFirst puts pods without a node first.
func UnscheduledFirst(a, b *observed.Replica) int { return trueFirst(!a.Scheduled, !b.Scheduled) }

// PendingFirst puts Pending before Unknown before Running.
func PendingFirst(a, b *observed.Replica) int { return cmp.Compare(progress(a), progress(b)) }

// UnreadyFirst puts pods that are not ready first.
func UnreadyFirst(a, b *observed.Replica) int { return trueFirst(!a.Ready, !b.Ready) }

// CheapestFirst puts pods with a lower deletion cost first.
func CheapestFirst(a, b *observed.Replica) int { return cmp.Compare(a.DeletionCost, b.DeletionCost) }

// MostRestartsFirst puts pods first whose containers were restarted more often.
func MostRestartsFirst(a, b *observed.Replica) int { return cmp.Compare(b.Restarts, a.Restarts) }

// NewestFirst puts pods first that were created later.
func NewestFirst(a, b *observed.Replica) int {
	return b.Pod.CreationTimestamp.Compare(a.Pod.CreationTimestamp.Time)
}

// ByName decides what nothing else decides.
func ByName(a, b *observed.Replica) int { return strings.Compare(a.Pod.Name, b.Pod.Name) }

// HighestFirst puts higher ordinals first.
func HighestFirst(a, b *observed.Replica) int { return cmp.Compare(b.Ordinal, a.Ordinal) }

// CrowdedFirst puts pods first that share their node with more live pods of the set.
func CrowdedFirst(o *observed.Set) Compare {
	onNode := map[string]int{}
	for i := range o.Replicas {
		if r := &o.Replicas[i]; r.Live() && r.Pod.Spec.NodeName != "" {
			onNode[r.Pod.Spec.NodeName]++
		}
	}
	return func(a, b *observed.Replica) int {
		return cmp.Compare(onNode[b.Pod.Spec.NodeName], onNode[a.Pod.Spec.NodeName])
	}
}

// LatestReadyFirst puts pods first that have been ready for a shorter time. Times are compared by their logarithm to
// base two, so that pods that became ready in one go do not crowd out what is compared after this.
func LatestReadyFirst(now time.Time) Compare {
	magnitude := func(r *observed.Replica) int {
		if r.ReadySince.IsZero() {
			return -1
		}
		return bits.Len64(uint64(max(0, now.Sub(r.ReadySince)/time.Second)))
	}
	return func(a, b *observed.Replica) int { return cmp.Compare(magnitude(a), magnitude(b)) }
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func progress(r *observed.Replica) int {
	switch r.Pod.Status.Phase {
	case corev1.PodPending, "":
		return 0
	case corev1.PodUnknown:
		return 1
	default:
		return 2
	}
}
