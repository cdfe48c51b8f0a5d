// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// These are the types of conditions.
const (
	// ConditionReady is True when the generation was observed, the rollout is complete as far as partition and pause allow,
	// and all pods are available.
	ConditionReady = "Ready"
	// ConditionAvailable is True when at least replicas − maxUnavailable pods are available, and at least one of any.
	ConditionAvailable = "Available"
	// ConditionProgressing is True while a rollout or scaling moves and when it is complete. It is False when nothing moves
	// that should, and Unknown during a pause.
	ConditionProgressing = "Progressing"
	// ConditionReplicaFailure is True while the API server refuses what the set needs. Otherwise it is absent.
	ConditionReplicaFailure = "ReplicaFailure"
	// ConditionStalled is True when nothing will move until a user acts. Otherwise it is absent. Tools that follow the
	// kstatus convention treat a set that is neither stalled nor ready as in progress.
	ConditionStalled = "Stalled"
	// ConditionDisruptionReady is True when what spec.disruption asks for is in force, and False when it is not. It is absent
	// if spec.disruption asks for nothing.
	ConditionDisruptionReady = "DisruptionReady"
)

// These are the reasons of the condition Progressing. Ready has them too.
const (
	// ReasonNewRevision: no pod has run the update revision yet.
	ReasonNewRevision = "NewRevision"
	// ReasonRollingUpdate: pods move to another revision.
	ReasonRollingUpdate = "RollingUpdate"
	// ReasonScaling: the number of pods changes, or new pods become available.
	ReasonScaling = "Scaling"
	// ReasonPartitionReached: as many pods run the update revision as the partition allows, and all are available.
	ReasonPartitionReached = "PartitionReached"
	// ReasonPaused: a user froze the revisions of the pods.
	ReasonPaused = "Paused"
	// ReasonComplete: all pods run the update revision, and were available at least once.
	ReasonComplete = "Complete"
	// ReasonNoReplicas: the set is scaled to 0, and has no pod. Nothing is rolled out.
	ReasonNoReplicas = "NoReplicas"
	// ReasonDeleting: the set is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonProgressDeadlineExceeded: there was no progress for progressDeadlineSeconds. Stalled has it too.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonRolledBack: the update revision missed its deadline, failed at a step or was aborted. The current revision is
	// wanted everywhere until the template changes. Stalled has it too.
	ReasonRolledBack = "RolledBack"
	// ReasonSoaking: the pods of a step are available, and must stay available for a while.
	ReasonSoaking = "Soaking"
	// ReasonAwaitingGate: a step waits for a condition that another program sets to True.
	ReasonAwaitingGate = "AwaitingGate"
	// ReasonAwaitingPromotion: a step waits for a person.
	ReasonAwaitingPromotion = "AwaitingPromotion"
	// ReasonStepFailed: a gate of a step is False, or timed out. Stalled has it too if there is no rollback.
	ReasonStepFailed = "StepFailed"
	// ReasonInvalidSpec: the spec is older than the validation that would refuse it. Every condition has this reason then.
	ReasonInvalidSpec = "InvalidSpec"
)

// These are the reasons of the condition ReplicaFailure.
const (
	// ReasonFailedCreate: a pod or claim could not be created.
	ReasonFailedCreate = "FailedCreate"
	// ReasonFailedDelete: a pod could not be deleted.
	ReasonFailedDelete = "FailedDelete"
	// ReasonFailedUpdate: a pod, claim or revision could not be updated.
	ReasonFailedUpdate = "FailedUpdate"
	// ReasonClaimConflict: a claim that a pod needs is terminating or belongs to another owner.
	ReasonClaimConflict = "ClaimConflict"
	// ReasonNameConflict: the name that a pod must have is taken.
	ReasonNameConflict = "NameConflict"
	// ReasonInvalidTemplate: the API server refuses pods made from the template. Ready, Progressing and Stalled have it too.
	ReasonInvalidTemplate = "InvalidTemplate"
)

// These are the reasons of the condition DisruptionReady. A refused write has the same reason as in ReplicaFailure, and a
// foreign budget with the name of the set has the reason NameConflict.
const (
	// ReasonInForce: what spec.disruption asks for is in force.
	ReasonInForce = "InForce"
	// ReasonMissingRights: the manager lacks the rights, and does nothing that needs them.
	ReasonMissingRights = "MissingRights"
	// ReasonForeignBudget: another PodDisruptionBudget selects the pods, so the set has none of its own.
	ReasonForeignBudget = "ForeignBudget"
	// ReasonBudgetPending: the set's PodDisruptionBudget is about to be created, changed or deleted.
	ReasonBudgetPending = "BudgetPending"
)

// These are the reasons of events about steps, in addition to those of conditions.
const (
	// ReasonStepStarted: a step has begun. A gate has this reason until the step is judged.
	ReasonStepStarted = "StepStarted"
	// ReasonStepsDone: all steps are done, and all other pods follow.
	ReasonStepsDone = "StepsDone"
	// ReasonRetried: a revision that was given up is retried.
	ReasonRetried = "Retried"
)

// These are the reasons of the conditions Ready and Available that are not a reason of Progressing.
const (
	// ReasonPodsUnavailable: the rollout was complete before, and some pods are not available now.
	ReasonPodsUnavailable = "PodsUnavailable"
	// ReasonMinimumPodsAvailable: enough pods are available.
	ReasonMinimumPodsAvailable = "MinimumPodsAvailable"
	// ReasonTooFewPodsAvailable: too few pods are available.
	ReasonTooFewPodsAvailable = "TooFewPodsAvailable"
)
