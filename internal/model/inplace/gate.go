// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
)

// Gate is the readiness gate of a pod. While it is not open, no traffic is sent to the pod, even if its containers are
// ready. A kubelet does not stop traffic by itself: a pod without a readiness probe stays ready while its containers are
// replaced.
type Gate struct {
	// Declared is true if the pod has the gate. Pods without it are updated without it, because gates are immutable.
	Declared bool
	// Status is the status of the condition; empty until it is first set.
	Status corev1.ConditionStatus
	// Since is when the status last changed.
	Since time.Time
	// Done is the newest generation of the pod whose update was found to be done. It is the generation for which the gate
	// was last opened.
	Done int64
}

// Position is the status that a gate is set to.
type Position corev1.ConditionStatus

// The positions of a gate.
const (
	Open   = Position(corev1.ConditionTrue)
	Closed = Position(corev1.ConditionFalse)
)

// reason returns the condition's reason.
func (p Position) reason() string {
	if p == Open {
		return "InService"
	}
	return "OutOfService"
}

// GateOf returns a pod's gate.
func GateOf(pod *corev1.Pod) Gate {
	g := Gate{}
	for _, declared := range pod.Spec.ReadinessGates {
		g.Declared = g.Declared || declared.ConditionType == v1beta1.InPlaceUpdateReady
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1beta1.InPlaceUpdateReady && g.Declared {
			g.Status, g.Since, g.Done = c.Status, c.LastTransitionTime.Time, c.ObservedGeneration
		}
	}
	return g
}

// Closed reports whether the gate was closed. A gate that was never set stops traffic too, but then the pod was not taken
// out of service: it has not been in service yet.
func (g Gate) Closed() bool {
	return g.Declared && g.Status != "" && g.Status != corev1.ConditionTrue
}

// Passable reports whether traffic can pass.
func (g Gate) Passable() bool { return !g.Declared || g.Status == corev1.ConditionTrue }

// gatePatch is a strategic merge patch of a pod's status. Conditions are merged by type.
type gatePatch struct {
	Metadata uidPatch    `json:"metadata"`
	Status   statusPatch `json:"status"`
}

type uidPatch struct {
	UID types.UID `json:"uid"`
}

type statusPatch struct {
	Conditions []corev1.PodCondition `json:"conditions"`
}

// GatePatch returns the strategic merge patch of a pod's status that opens or closes its gate. It does not depend on the
// position of the gate, and changes nothing else. A gate is opened when the pod's update is done. The patch records the
// pod's generation, so that a later manager does not have to find out again.
func GatePatch(pod *corev1.Pod, position Position, now time.Time) ([]byte, error) {
	condition := corev1.PodCondition{
		Type:               v1beta1.InPlaceUpdateReady,
		Status:             corev1.ConditionStatus(position),
		Reason:             position.reason(),
		LastTransitionTime: metav1.NewTime(now),
	}
	if position == Open {
		condition.ObservedGeneration = pod.Generation
	}
	body, err := json.Marshal(gatePatch{
		Metadata: uidPatch{UID: pod.UID},
		Status:   statusPatch{Conditions: []corev1.PodCondition{condition}},
	})
	if err != nil {
		return nil, fmt.Errorf("patch gate of pod %s: %w", pod.Name, err)
	}
	return body, nil
}
