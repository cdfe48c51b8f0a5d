// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

const (
	// RevisionLabel carries, on every pod, the name of the ControllerRevision it was made from.
	RevisionLabel = "controller-revision-hash"

	// InstanceIDLabel carries the identity of a pod, and of its claims, in a set with podIdentity Random.
	InstanceIDLabel = "apps.rollset.dev/instance-id"

	// PodIndexLabel carries the ordinal of a pod in a set with podIdentity Ordinal.
	PodIndexLabel = "apps.kubernetes.io/pod-index"

	// PodNameLabel carries the name of a pod in a set with podIdentity Ordinal.
	PodNameLabel = "statefulset.kubernetes.io/pod-name"

	// SetLabel carries, on every claim, the name of the set that made it.
	SetLabel = "apps.rollset.dev/set"

	// SurgeLabel, with the value "true", marks what maxSurge made for a rollout and what goes at the end of it: a pod, and the
	// claims that were created for that pod. A pod whose label is taken off stays.
	SurgeLabel = "apps.rollset.dev/surge"

	// LeftLabel, with the value "true", marks the claims that a scale-down of a set with random names has left behind. A pod
	// that comes back has its own claims, and only a pod that is new has these.
	LeftLabel = "apps.rollset.dev/left"

	// SpecifiedDeleteLabel, with any value but "false", marks a pod that a user wants deleted first, or replaced.
	SpecifiedDeleteLabel = "apps.rollset.dev/specified-delete"

	// ReplacedLabel, with the value "true", marks a pod that came in the place of one that podsToDelete names, with its claims
	// and so with its name: it is not the one that is meant. The label goes when the name does.
	ReplacedLabel = "apps.rollset.dev/replaced"

	// LifecycleStateLabel carries the state of a pod in a set that uses lifecycle hooks.
	LifecycleStateLabel = "lifecycle.rollset.dev/state"

	// InPlaceUpdateReady is the readiness gate that turns traffic away while a pod is updated in place.
	InPlaceUpdateReady = "apps.rollset.dev/InPlaceUpdateReady"

	// PromoteAnnotation, on a set, ends the pause of a step: <revision>/<step>. <revision>/all ends all steps.
	PromoteAnnotation = "apps.rollset.dev/promote"

	// AbortAnnotation, on a set, names an update revision that is to be given up.
	AbortAnnotation = "apps.rollset.dev/abort"

	// RetryAnnotation, on a set, names an update revision that was given up and is to be tried again.
	RetryAnnotation = "apps.rollset.dev/retry"

	// ReservedPrefix is the prefix of label and annotation keys that templates must not use.
	ReservedPrefix = "rollset.dev/"
)
