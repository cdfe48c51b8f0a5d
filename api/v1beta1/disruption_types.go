// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// DrainPolicy determines what happens to pods on a node that leaves.
// +kubebuilder:validation:Enum=Ignore;Replace
type DrainPolicy string

const (
	// IgnoreDrain does nothing: a pod is replaced once it is evicted.
	IgnoreDrain DrainPolicy = "Ignore"
	// ReplaceOnDrain replaces the pods of a node that leaves, as if a user had named them for replacement.
	ReplaceOnDrain DrainPolicy = "Replace"
)

// BudgetPolicy is whether a set has a PodDisruptionBudget of its own.
// +kubebuilder:validation:Enum=None;Auto
type BudgetPolicy string

const (
	// NoBudget makes no PodDisruptionBudget.
	NoBudget BudgetPolicy = "None"
	// AutoBudget keeps a PodDisruptionBudget that allows as many evictions as maxUnavailable allows unavailable pods.
	AutoBudget BudgetPolicy = "Auto"
)

// Disruption configures how a set takes part when nodes leave and pods are evicted.
// +kubebuilder:validation:XValidation:fieldPath=".drainTaints",rule="!has(self.drainTaints) || self.onDrain == 'Replace'",message="must not be set unless onDrain is Replace: nothing else reads it"
type Disruption struct {
	// onDrain is Ignore (a pod is replaced once it is evicted) or Replace (pods on a node that is cordoned, or that has a taint
	// of drainTaints, are replaced as if a user had named them: with a surge pod first if maxSurge allows one, otherwise one
	// after the other within maxUnavailable). So a drain ends although a PodDisruptionBudget refuses evictions.
	// +optional
	// +kubebuilder:default=Ignore
	OnDrain DrainPolicy `json:"onDrain,omitempty"`

	// drainTaints lists the keys of taints that mark a node that leaves. Default: karpenter.sh/disrupted and
	// ToBeDeletedByClusterAutoscaler. A list replaces the default; an empty list leaves only cordoned nodes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=316
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$')",message="must be the key of a taint, such as example.com/leaving"
	DrainTaints []string `json:"drainTaints,omitempty"`

	// podDisruptionBudget is None, or Auto: the set owns a PodDisruptionBudget with minAvailable = replicas − maxUnavailable.
	// There is none while another budget selects the same pods, because two refuse every eviction.
	// +optional
	// +kubebuilder:default=None
	PodDisruptionBudget BudgetPolicy `json:"podDisruptionBudget,omitempty"`
}
