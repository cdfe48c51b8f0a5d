// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubelet models a kubelet's work on one pod, as far as the API server's clients can see it.
//
// The model is a pure state machine. Step takes the pod, the kubelet's memory of it and the time, and returns the
// status that a kubelet would report next. It has no clock, no client and no randomness. So one table of behavior
// drives the deterministic simulator, tests on a bare API server and the local cluster.
//
// What it answers was recorded from kubelet 1.37 with containerd. The points that a controller can trip over:
//
//   - After a spec change the kubelet reports the new observedGeneration before it does anything, with Ready still
//     True and the old container running. Only a later event shows the new container, and a generation observed
//     while the pod's worker is busy arrives together with the container of the generation before.
//   - A container without readiness probe is ready in the very event in which it runs, so that a pod without probes
//     never stops being Ready while its containers are replaced.
//   - A status names images in full: docker.io/library/app:v1 for app:v1. The name may be another tag of the same
//     content, and while an image cannot be pulled the status keeps image, imageID and containerID of the container
//     that was killed to make room.
//   - Statuses of containers are sorted by name, not as the spec has them; those of init containers are not.
//   - A deleted pod stays Ready until its containers have ended; then its phase is Succeeded or Failed, then it goes.
//   - Readiness gates and conditions of other owners are read, and never written.
//
// # Images that misbehave
//
// A word in an image's tag decides how its containers behave, so that a test can ask for trouble in a pod template:
//
//	broken    runs and never becomes ready
//	slow      becomes ready after Model.SlowDelay
//	crash     runs for Model.CrashDelay and exits with code 1, again and again, with a growing back-off
//	exit      the same with code 0
//	missing   cannot be pulled
//	…-again   is another tag of the same content: x:v1-again is reported as x:v1, with the same digest
//	mirror    is reported under the host of a mirror
//	bare      has no name on the node: image and imageID are the digest alone
//
// A name that cannot be parsed is reported as InvalidImageName.
//
// # Annotations that ask for something
//
// EvictAnnotation makes the node evict the pod; DeferResizeAnnotation keeps its resizes waiting for room;
// WithholdReadyAnnotation keeps its readiness probes failing.
package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// EvictAnnotation on a pod, with any value, makes the node evict it: phase Failed, reason Evicted.
	EvictAnnotation = "kubelet.sim/evict"
	// DeferResizeAnnotation on a pod, with any value, makes a resize wait as though other pods used up the node.
	// Taking it away lets the resize go on.
	DeferResizeAnnotation = "kubelet.sim/defer-resize"
	// WithholdReadyAnnotation on a pod, with any value, keeps containers that are not ready from becoming ready.
	WithholdReadyAnnotation = "kubelet.sim/withhold-ready"
)

// Model holds the timings and the size of a simulated node. Its zero value is a node on which everything that can be
// instant is: events keep their order, and only back-offs and slow images take time.
type Model struct {
	// SandboxDelay is the time from the first sight of a pod until its sandbox and network stand.
	SandboxDelay time.Duration
	// StartDelay is the time that it takes to pull an image and start a container, or to find that one cannot.
	StartDelay time.Duration
	// ReadyDelay is the time from a container's start until its readiness probe passes.
	ReadyDelay time.Duration
	// SlowDelay is the same for a slow image, probe or not. Zero means 30 s.
	SlowDelay time.Duration
	// TermDelay is the time that a container takes to end after it was asked to. The pod's grace period bounds it:
	// a container that needs longer is killed, and exits with code 137.
	TermDelay time.Duration
	// RemoveDelay is the time from the end of a deleted pod's last container until the deletion of its object is requested.
	RemoveDelay time.Duration
	// ResizeDelay is the time from the acceptance of a resize until the containers have their new resources.
	ResizeDelay time.Duration
	// CrashDelay is the time that a crashing container runs.
	CrashDelay time.Duration
	// BackOff is the first delay of a crash loop, doubled at every crash up to 30 times as long, and the time between
	// two attempts to pull a missing image. Zero means 10 s.
	BackOff time.Duration
	// Allocatable is the resources of the node for one pod. A resize that requests more is infeasible. Resources that are not
	// listed have no limit.
	Allocatable corev1.ResourceList
	// HostIP is the node's address. Empty means one of the addresses kept for documentation.
	HostIP string
}

// Recorded returns a model with the timings of a real, idle node that runs containers which end at once.
func Recorded() Model {
	return Model{
		SandboxDelay: 150 * time.Millisecond,
		StartDelay:   100 * time.Millisecond,
		ReadyDelay:   time.Second,
		SlowDelay:    30 * time.Second,
		TermDelay:    50 * time.Millisecond,
		RemoveDelay:  500 * time.Millisecond,
		ResizeDelay:  50 * time.Millisecond,
		CrashDelay:   500 * time.Millisecond,
		BackOff:      10 * time.Second,
	}
}

// Outcome is the work of a kubelet on one pod at one instant.
type Outcome struct {
	// Status is the status to write; nil if it has not changed.
	Status *corev1.PodStatus
	// Memory is the memory of the pod from now on. It goes with Status: a caller that could not
	// write the status keeps the memory it had.
	Memory Memory
	// Remove is true when the pod has ended and its object is to be deleted with grace period 0.
	Remove bool
	// Next is how long after now the pod must be looked at again, even if it does not change; never negative, and
	// at least a nanosecond where there is anything to come. Zero: only when the pod changes.
	Next time.Duration
}

// Step returns what the pod's kubelet does at the time now. It never changes its arguments.
//
// It is to be called with the newest pod that the caller knows, its own last status write included, whenever the pod
// has changed (for that write, too) and when Outcome.Next has passed. Calling it more often is harmless. Each call
// yields one event at most. A pod that is not bound to a node is left alone.
func (m Model) Step(pod *corev1.Pod, memory Memory, now time.Time) Outcome {
	if pod.Spec.NodeName == "" {
		return Outcome{}
	}
	v := m.visit(pod, memory, now)
	switch {
	case isFinished(pod.Status.Phase):
		termination{v}.letGo()
	case pod.DeletionTimestamp != nil:
		termination{v}.terminate()
	case isEvicted(pod):
		termination{v}.evict()
	case pod.Status.StartTime == nil:
		v.admit()
	default:
		v.work()
	}
	return v.outcome()
}

// slowDelay, backOff and hostIP are the fields' values with their defaults.
func (m Model) slowDelay() time.Duration { return orDefault(m.SlowDelay, 30*time.Second) }
func (m Model) backOff() time.Duration   { return orDefault(m.BackOff, 10*time.Second) }
func (m Model) hostIP() string           { return orDefault(m.HostIP, "192.0.2.1") }

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
