// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
)

// truncateTimes truncates the times of a status as the wire format does: to whole seconds in UTC.
func truncateTimes(obj client.Object) {
	switch o := obj.(type) {
	case *v1beta1.RollSet:
		for i := range o.Status.Conditions {
			truncate(&o.Status.Conditions[i].LastTransitionTime)
		}
	case *corev1.Pod:
		truncatePodTimes(&o.Status)
	}
}

func truncatePodTimes(status *corev1.PodStatus) {
	if status.StartTime != nil {
		status.StartTime = new(*status.StartTime)
		truncate(status.StartTime)
	}
	for i := range status.Conditions {
		truncate(&status.Conditions[i].LastTransitionTime)
		truncate(&status.Conditions[i].LastProbeTime)
	}
	for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range statuses {
			truncateState(&statuses[i].State)
			truncateState(&statuses[i].LastTerminationState)
		}
	}
}

func truncateState(state *corev1.ContainerState) {
	if r := state.Running; r != nil {
		truncate(&r.StartedAt)
	}
	if t := state.Terminated; t != nil {
		truncate(&t.StartedAt)
		truncate(&t.FinishedAt)
	}
}

func truncate(t *metav1.Time) {
	if !t.IsZero() {
		*t = metav1.NewTime(t.UTC().Truncate(time.Second))
	}
}

// SetPodCondition sets a condition, keeping the time of the last transition if the status stays.
func SetPodCondition(status *corev1.PodStatus, condition corev1.PodCondition) {
	for i := range status.Conditions {
		if status.Conditions[i].Type == condition.Type {
			if status.Conditions[i].Status == condition.Status {
				condition.LastTransitionTime = status.Conditions[i].LastTransitionTime
			}
			status.Conditions[i] = condition
			return
		}
	}
	status.Conditions = append(status.Conditions, condition)
}
