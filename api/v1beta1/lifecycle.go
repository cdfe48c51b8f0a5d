// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// LifecycleState is the value of the label LifecycleStateLabel: the state of a pod in a set that uses lifecycle hooks.
type LifecycleState string

const (
	// LifecyclePreparingNormal means that a new pod waits for the marks of the hook preNormal.
	LifecyclePreparingNormal LifecycleState = "PreparingNormal"
	// LifecycleNormal means that the pod waits for no hook.
	LifecycleNormal LifecycleState = "Normal"
	// LifecyclePreparingUpdate means that a pod is to be updated in place once the marks of the hook inPlaceUpdate are gone.
	LifecyclePreparingUpdate LifecycleState = "PreparingUpdate"
	// LifecycleUpdating means that a pod is being updated in place.
	LifecycleUpdating LifecycleState = "Updating"
	// LifecycleUpdated means that a pod was updated in place and waits for the marks of the hook inPlaceUpdate.
	LifecycleUpdated LifecycleState = "Updated"
	// LifecyclePreparingDelete means that a pod is to be deleted once the marks of the hook preDelete are gone.
	LifecyclePreparingDelete LifecycleState = "PreparingDelete"
)

// HookTimeoutPolicy determines what happens when a pod has waited for a lifecycle hook as long as it may.
// +kubebuilder:validation:Enum=Hold;Proceed
type HookTimeoutPolicy string

const (
	// HoldOnTimeout reports the missed limit and keeps waiting.
	HoldOnTimeout HookTimeoutPolicy = "Hold"
	// ProceedOnTimeout continues without the hook.
	ProceedOnTimeout HookTimeoutPolicy = "Proceed"
)
