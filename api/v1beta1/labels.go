// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

const (
	// RevisionLabel holds, on every pod, the name of the ControllerRevision that the pod was made from.
	RevisionLabel = "controller-revision-hash"

	// InstanceIDLabel holds the identity of a pod, and of its claims, in a set with podIdentity Random.
	InstanceIDLabel = "apps.rollset.dev/instance-id"

	// PodIndexLabel holds the ordinal of a pod in a set with podIdentity Ordinal.
	PodIndexLabel = "apps.kubernetes.io/pod-index"

	// PodNameLabel holds the name of a pod in a set with podIdentity Ordinal.
	PodNameLabel = "statefulset.kubernetes.io/pod-name"

	// SetLabel holds, on every claim, the name of the set that made it.
	SetLabel = "apps.rollset.dev/set"

	// SurgeLabel, with the value "true", marks a pod that maxSurge made and that is deleted at the end of the rollout, and
	// the claims that were created for it. A pod with a random name stays if its label is removed. A pod whose ordinal comes into
	// use stays, and loses the label.
	SurgeLabel = "apps.rollset.dev/surge"

	// LeftLabel, with the value "true", marks the claims in a set with random names that no pod is to come back to: a scale-down
	// left them, or another pod took the place of theirs. Only new pods use them, because a pod that comes back has its own claims.
	LeftLabel = "apps.rollset.dev/left"

	// SpecifiedDeleteLabel, with any value but "false", marks a pod that a user wants deleted first, or replaced.
	SpecifiedDeleteLabel = "apps.rollset.dev/specified-delete"

	// ReplacedLabel, with the value "true", marks a pod that replaced one listed in podsToDelete, with its claims and so
	// with its name. The listed name does not mean this pod. The label is removed when the name is removed from the list.
	ReplacedLabel = "apps.rollset.dev/replaced"

	// LifecycleStateLabel holds the state of a pod in a set that uses lifecycle hooks.
	LifecycleStateLabel = "lifecycle.rollset.dev/state"

	// LifecycleSinceAnnotation holds, on a pod, since when it has been in its lifecycle state. The state is repeated, because
	// the label may have been changed by hand.
	LifecycleSinceAnnotation = "lifecycle.rollset.dev/since"

	// InPlaceUpdateReady is the readiness gate that stops traffic while a pod is updated in place.
	InPlaceUpdateReady = "apps.rollset.dev/InPlaceUpdateReady"

	// OriginAnnotation, on a pod of a set with failure domains, reports whether the pod replaces another, and in which domain that was.
	OriginAnnotation = "apps.rollset.dev/origin"

	// AttributesClassAnnotation, on a claim, names the volume attributes class that the set gave to it.
	AttributesClassAnnotation = "apps.rollset.dev/volume-attributes-class"

	// PromoteAnnotation, on a set, ends the pause of a step: <revision>/<step>. <revision>/all ends all steps.
	PromoteAnnotation = "apps.rollset.dev/promote"

	// AbortAnnotation, on a set, names an update revision to give up.
	AbortAnnotation = "apps.rollset.dev/abort"

	// RetryAnnotation, on a set, names an update revision that was given up and is to be retried.
	RetryAnnotation = "apps.rollset.dev/retry"

	// ReservedPrefix is the prefix of label and annotation keys that templates must not use.
	ReservedPrefix = "rollset.dev/"
)
