// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The types of the conditions.
const (
	// ConditionReady is True when the generation was observed, the rollout is complete as far as partition and pause
	// allow, and all pods are available.
	ConditionReady = "Ready"
	// ConditionAvailable is True when at least replicas − maxUnavailable pods are available, and at least one of any.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while something moves and when all has been reached, False when nothing moves that
	// should, and Unknown while a pause keeps it from being known.
	ConditionProgressing = "Progressing"
	// ConditionReplicaFailure is True while the API server refuses what the set needs. It is absent otherwise.
	ConditionReplicaFailure = "ReplicaFailure"
	// ConditionStalled is True when nothing will move without a human. It is absent otherwise: tools that know the
	// convention take a set that is not stalled, and not ready, for one that is on its way.
	ConditionStalled = "Stalled"
)

// The reasons of the condition Progressing. Ready has them too.
const (
	// ReasonNewRevision: no pod has run the update revision yet.
	ReasonNewRevision = "NewRevision"
	// ReasonRollingUpdate: pods move to another revision.
	ReasonRollingUpdate = "RollingUpdate"
	// ReasonScaling: the number of pods changes, or new pods become available.
	ReasonScaling = "Scaling"
	// ReasonPartitionReached: as many pods run the update revision as the partition allows, and all are available.
	ReasonPartitionReached = "PartitionReached"
	// ReasonPaused: a user has frozen the mix of revisions.
	ReasonPaused = "Paused"
	// ReasonComplete: all pods run the update revision, and were available at least once.
	ReasonComplete = "Complete"
	// ReasonProgressDeadlineExceeded: nothing was reached for progressDeadlineSeconds. Stalled has it too.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonRolledBack: the update revision missed its deadline, failed at a step or was aborted, and the current one is wanted
	// everywhere until the template changes. Stalled has it too.
	ReasonRolledBack = "RolledBack"
	// ReasonSoaking: the pods of a step are available, and have to stay so for a while.
	ReasonSoaking = "Soaking"
	// ReasonAwaitingGate: a step waits for a condition that somebody else sets to True.
	ReasonAwaitingGate = "AwaitingGate"
	// ReasonAwaitingPromotion: a step waits for a person.
	ReasonAwaitingPromotion = "AwaitingPromotion"
	// ReasonStepFailed: a gate of a step is False, or took too long. Stalled has it too if nothing is rolled back for that.
	ReasonStepFailed = "StepFailed"
	// ReasonInvalidSpec: the spec is older than the validation that would refuse it. Every condition has it then.
	ReasonInvalidSpec = "InvalidSpec"
)

// The reasons of the condition ReplicaFailure.
const (
	// ReasonFailedCreate: a pod or claim could not be created.
	ReasonFailedCreate = "FailedCreate"
	// ReasonFailedDelete: a pod could not be deleted.
	ReasonFailedDelete = "FailedDelete"
	// ReasonFailedUpdate: a pod, claim or revision could not be updated.
	ReasonFailedUpdate = "FailedUpdate"
	// ReasonClaimConflict: a claim that a pod needs is terminating or belongs to something else.
	ReasonClaimConflict = "ClaimConflict"
	// ReasonNameConflict: the name that a pod must have is taken.
	ReasonNameConflict = "NameConflict"
	// ReasonInvalidTemplate: the API server refuses pods made from the template. Ready, Progressing and Stalled have it too.
	ReasonInvalidTemplate = "InvalidTemplate"
)

// The reasons of events about steps, beside those of conditions.
const (
	// ReasonStepStarted: a step has begun. A gate has it too until somebody judges the step.
	ReasonStepStarted = "StepStarted"
	// ReasonStepsDone: all steps are done, and all other pods follow.
	ReasonStepsDone = "StepsDone"
	// ReasonRetried: a revision that was given up is tried again.
	ReasonRetried = "Retried"
)

// The reasons of the conditions Ready and Available that are not a reason of Progressing.
const (
	// ReasonPodsUnavailable: all was reached before, and some pods are not available now.
	ReasonPodsUnavailable = "PodsUnavailable"
	// ReasonMinimumPodsAvailable: as many pods are available as must be.
	ReasonMinimumPodsAvailable = "MinimumPodsAvailable"
	// ReasonTooFewPodsAvailable: fewer pods are available than must be.
	ReasonTooFewPodsAvailable = "TooFewPodsAvailable"
)
