// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/snapshot"
)

// CloseGate takes a pod out of service by its readiness gate.
type CloseGate struct {
	// Pod is the pod as observed; its UID becomes a precondition.
	Pod *corev1.Pod
	// Reason is why the pod must not serve.
	Reason string
}

// OpenGate puts a pod into service by its readiness gate.
type OpenGate struct {
	// Pod is the pod as observed; its UID becomes a precondition.
	Pod *corev1.Pod
	// Reason is why the pod may serve.
	Reason string
}

// UpdateInPlace moves a running pod to another revision.
type UpdateInPlace struct {
	// Pod is the pod as observed; its UID becomes a precondition, and its resource version too if a container restarts.
	Pod *corev1.Pod
	// Revision is the name of the revision that it goes to.
	Revision string
	// Change makes it a pod of that revision.
	Change inplace.Change
	// Passed is the lifecycle hook that the update does not wait for any longer.
	Passed snapshot.Passed
}

// Resize gives containers of a pod the resources of the pod's revision.
type Resize struct {
	// Pod is the pod as observed; its UID becomes a precondition.
	Pod *corev1.Pod
	// Revision is the name of the revision.
	Revision string
	// Patch is the patch of the resize subresource.
	Patch []byte
	// Change describes the update that the resize ends.
	Change string
}

// SetState writes the lifecycle state of a pod.
type SetState struct {
	// Pod is the pod as observed; its UID becomes a precondition.
	Pod *corev1.Pod
	// State is the state to write.
	State v1beta1.LifecycleState
	// Reason is why the state changes.
	Reason string
	// Passed is the lifecycle hook that the pod does not wait for any longer.
	Passed snapshot.Passed
}

func (CloseGate) isAction() {}

func (OpenGate) isAction() {}

func (UpdateInPlace) isAction() {}

func (Resize) isAction() {}

func (SetState) isAction() {}

// String returns the line of logs and golden files.
func (a CloseGate) String() string {
	return fmt.Sprintf("close gate of %s (%s)", a.Pod.Name, a.Reason)
}

// String returns the line of logs and golden files.
func (a OpenGate) String() string { return fmt.Sprintf("open gate of %s (%s)", a.Pod.Name, a.Reason) }

// String returns the line of logs and golden files.
func (a UpdateInPlace) String() string {
	return fmt.Sprintf("update %s in place to %s (%s)", a.Pod.Name, a.Revision, a.Why())
}

// Why returns what changes, and the lifecycle hook that the update does not wait for any longer.
func (a UpdateInPlace) Why() string {
	if a.Passed.Hook == "" {
		return a.Change.String()
	}
	return a.Change.String() + "; " + a.Passed.String()
}

// String returns the line of logs and golden files.
func (a Resize) String() string {
	return fmt.Sprintf("resize %s to the resources of %s", a.Pod.Name, a.Revision)
}

// String returns the line of logs and golden files.
func (a SetState) String() string {
	return fmt.Sprintf("set %s to %s (%s)", a.Pod.Name, a.State, a.Reason)
}
