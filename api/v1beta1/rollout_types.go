// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// StepFailurePolicy determines what happens when a gate of a step fails.
// +kubebuilder:validation:Enum=Hold;Rollback
type StepFailurePolicy string

const (
	// HoldOnStepFailed reports the failure, and continues if the gate becomes True later.
	HoldOnStepFailed StepFailurePolicy = "Hold"
	// RollbackOnStepFailed moves all pods back to the current revision until the template changes.
	RollbackOnStepFailed StepFailurePolicy = "Rollback"
)

// RolloutStep is a number of pods that an update moves before it waits.
type RolloutStep struct {
	// updated is how many pods are at the update revision when the step is done: a number, or a percentage of replicas,
	// rounded down but at least 1. It applies together with partition, and never moves more pods than partition allows.
	// +required
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 2147483647 : self.matches('^(100|[1-9][0-9]?)%$')",message="must be a number of pods of at least 1, or a percentage of replicas from \"1%\" to \"100%\""
	Updated intstr.IntOrString `json:"updated"`

	// soakSeconds is how long all pods of the step must stay available, without a container restarting, before the step
	// ends.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SoakSeconds int32 `json:"soakSeconds,omitempty"`

	// pause keeps the step from ending until it is promoted with the annotation
	// apps.rollset.dev/promote=<status.updateRevision>/<step> on the set. The first step is 1.
	// +optional
	Pause bool `json:"pause,omitempty"`

	// gates are conditions in the status of the set that other programs must set to True before the step ends.
	// +optional
	// +listType=map
	// +listMapKey=conditionType
	// +kubebuilder:validation:MaxItems=8
	Gates []StepGate `json:"gates,omitempty"`
}

// StepGate is a condition that a step waits for.
type StepGate struct {
	// conditionType is the type of a condition in the status of the set. It is set to Unknown when the step begins. The
	// program that judges the step sets it to True, or to False to fail the step.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([^/]*(Ready|Available|Progressing|Reconciling|Failure|Stalled)|([^/]*[.])?rollset[.]dev/.*)$')",message="must not end with Ready, Available, Progressing, Reconciling, Failure or Stalled, or begin with rollset.dev/: the controller writes those conditions itself; a prefix of yours makes it a type of yours, such as \"example.com/Ready\""
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$')",message="must be the type of a condition, such as \"ErrorRate\" or \"example.com/ErrorRate\""
	ConditionType string `json:"conditionType"`

	// timeoutSeconds is how long the condition may take to become True, counted from when the pods of the step are
	// available. After that the step fails. Unset means no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// RolloutPhase names what a step waits for.
// +kubebuilder:validation:Enum=Rolling;Soaking;Gated;Paused;Failed
type RolloutPhase string

const (
	// RolloutRolling: pods of the step are being moved, or are not available yet.
	RolloutRolling RolloutPhase = "Rolling"
	// RolloutSoaking: all pods of the step are available, and must stay available for a while.
	RolloutSoaking RolloutPhase = "Soaking"
	// RolloutGated: a gate is not True yet.
	RolloutGated RolloutPhase = "Gated"
	// RolloutPaused: the step waits to be promoted.
	RolloutPaused RolloutPhase = "Paused"
	// RolloutFailed: a gate is False, or was not True in time, or the revision was given up.
	RolloutFailed RolloutPhase = "Failed"
)

// RolloutStatus is the progress of a rollout in steps.
type RolloutStatus struct {
	// revision is the revision that is being rolled out.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision"`

	// step is the step at work. The first is 1. It is one more than steps when all are done and the other pods follow, and 0
	// while the revision is given up: a retry begins with the first step.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Step int32 `json:"step"`

	// steps is the number of steps.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Steps int32 `json:"steps"`

	// updated is the size of the step at work, as in the spec. If that size is edited, the step is found again by the number
	// of pods at the revision.
	// +optional
	Updated *intstr.IntOrString `json:"updated,omitempty"`

	// phase names what the step waits for.
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`

	// since is when the pods of the step became available or, while the phase is Rolling, when that phase began. Soak times
	// and the timeouts of gates count from it.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// until is when the phase ends by itself: Soaking when the pods were available for long enough, Gated when the first
	// gate times out.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// ignoredPromotion is the value of the annotation apps.rollset.dev/promote when the step began, if it names this step.
	// It was meant for an earlier step. It counts only after it was removed and set again.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	IgnoredPromotion string `json:"ignoredPromotion,omitempty"`
}

// FailureDomains divide the pods of a set by a label. Pods with the same value of the label are in one failure domain.
type FailureDomains struct {
	// labelKey is the key of the label of pods whose value names the domain, such as topology.kubernetes.io/zone. The API
	// server copies that label from the node to the pod since Kubernetes 1.35. A pod without the label is a domain of its
	// own.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="must be the key of a label, such as \"topology.kubernetes.io/zone\""
	LabelKey string `json:"labelKey"`

	// soakSeconds is how long all updated pods must stay available, without a container restarting, before the next domain
	// begins.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	SoakSeconds int32 `json:"soakSeconds,omitempty"`
}
