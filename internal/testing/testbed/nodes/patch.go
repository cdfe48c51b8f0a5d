// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// statusPatch returns a strategic merge patch with the kubelet's changes to the pod's status. Conditions are merged by type, so
// that those of other writers stay as they are. The UID makes it fail on another pod of the same name.
func statusPatch(pod *corev1.Pod, status *corev1.PodStatus) ([]byte, error) {
	before, beforeErr := json.Marshal(corev1.Pod{Status: pod.Status})
	after, afterErr := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: *status})
	if err := errors.Join(beforeErr, afterErr); err != nil {
		return nil, fmt.Errorf("encode status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
}
