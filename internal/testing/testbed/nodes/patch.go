// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// podPatch is a strategic merge patch of a pod's status. The UID makes it fail on another pod of the same name.
type podPatch struct {
	Metadata patchMeta      `json:"metadata"`
	Status   map[string]any `json:"status"`
}

type patchMeta struct {
	UID types.UID `json:"uid"`
}

// statusPatch returns a patch with the kubelet's changes to the pod's status. Conditions are merged by type, so that
// those of other writers stay as they are.
func statusPatch(pod *corev1.Pod, status *corev1.PodStatus) ([]byte, error) {
	old, changed := &pod.Status, map[string]any{}
	note := func(field string, before, after any) {
		if !apiequality.Semantic.DeepEqual(before, after) {
			changed[field] = after
		}
	}
	note("observedGeneration", old.ObservedGeneration, status.ObservedGeneration)
	note("phase", old.Phase, status.Phase)
	note("reason", old.Reason, status.Reason)
	note("message", old.Message, status.Message)
	note("hostIP", old.HostIP, status.HostIP)
	note("hostIPs", old.HostIPs, status.HostIPs)
	note("podIP", old.PodIP, status.PodIP)
	note("podIPs", old.PodIPs, status.PodIPs)
	note("startTime", old.StartTime, status.StartTime)
	note("initContainerStatuses", old.InitContainerStatuses, status.InitContainerStatuses)
	note("containerStatuses", old.ContainerStatuses, status.ContainerStatuses)
	if conditions := changedConditions(old.Conditions, status.Conditions); len(conditions) > 0 {
		changed["conditions"] = conditions
	}
	patch, err := json.Marshal(podPatch{Metadata: patchMeta{UID: pod.UID}, Status: changed})
	if err != nil {
		return nil, fmt.Errorf("encode status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return patch, nil
}

// changedConditions lists the conditions that differ, as a patch does: new and changed ones whole, those that go by
// their type.
func changedConditions(before, after []corev1.PodCondition) []any {
	var changed []any
	old := byType(before)
	for i := range after {
		was, ok := old[after[i].Type]
		delete(old, after[i].Type)
		switch {
		case !ok:
			changed = append(changed, after[i])
		case !apiequality.Semantic.DeepEqual(was, after[i]):
			changed = append(changed, conditionPatch(after[i]))
		}
	}
	for t := range old {
		changed = append(changed, map[string]any{"type": t, "$patch": "delete"})
	}
	return changed
}

// conditionPatch spells out the fields that a merge would otherwise leave as they were.
func conditionPatch(c corev1.PodCondition) map[string]any {
	return map[string]any{
		"type": c.Type, "status": c.Status, "reason": nilIfEmpty(c.Reason), "message": nilIfEmpty(c.Message),
		"observedGeneration": c.ObservedGeneration, "lastTransitionTime": c.LastTransitionTime,
	}
}

// nilIfEmpty is null in a patch, which removes the field.
func nilIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func byType(conditions []corev1.PodCondition) map[corev1.PodConditionType]corev1.PodCondition {
	m := make(map[corev1.PodConditionType]corev1.PodCondition, len(conditions))
	for i := range conditions {
		m[conditions[i].Type] = conditions[i]
	}
	return m
}
