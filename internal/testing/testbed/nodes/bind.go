// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// binder binds pods to the nodes of a fleet.
type binder struct{ *Fleet }

// bind binds a pod to a node. It respects node selectors, scheduling gates and claims, and every node has room for
// every pod. It returns when to try again.
func (f binder) bind(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	if pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 {
		return 0, nil
	}
	fitting := f.fitting(pod)
	if len(fitting) == 0 {
		return 0, f.reportUnschedulable(ctx, pod, fmt.Sprintf(
			"0/%d nodes are available: %d node(s) didn't match Pod's node affinity/selector.", len(f.names), len(f.names)))
	}
	if why := f.unboundClaim(pod); why != "" {
		return retryDelay, f.reportUnschedulable(ctx, pod, why)
	}
	// The same pod goes to the same node however often it is tried, and pods spread.
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(pod.UID))
	node := fitting[int(hash.Sum32()%uint32(len(fitting)))]
	err := f.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("bind pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return 0, nil
}

// fitting returns the nodes that have the labels which the pod selects.
func (f binder) fitting(pod *corev1.Pod) []string {
	selector := labels.SelectorFromSet(pod.Spec.NodeSelector)
	return slices.DeleteFunc(slices.Clone(f.names), func(name string) bool { return !selector.Matches(labels.Set(f.node(name).Labels)) })
}

// unboundClaim returns the scheduler's message if a claim of the pod is not bound; empty if all are.
func (f binder) unboundClaim(pod *corev1.Pod) string {
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		claim, err := f.claims.PersistentVolumeClaims(pod.Namespace).Get(source.ClaimName)
		switch {
		case err != nil:
			return fmt.Sprintf("0/%d nodes are available: persistentvolumeclaim %q not found.", len(f.names), source.ClaimName)
		case claim.DeletionTimestamp != nil:
			return fmt.Sprintf("0/%d nodes are available: persistentvolumeclaim %q is being deleted.", len(f.names), source.ClaimName)
		case f.options.Claims && claim.Status.Phase != corev1.ClaimBound:
			return fmt.Sprintf("0/%d nodes are available: pod has unbound immediate PersistentVolumeClaims.", len(f.names))
		}
	}
	return ""
}

func (f binder) reportUnschedulable(ctx context.Context, pod *corev1.Pod, message string) error {
	if c := podstate.Condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Message == message {
		return nil
	}
	status := pod.Status.DeepCopy()
	apiserver.SetPodCondition(status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: message, LastTransitionTime: metav1.NewTime(time.Now()),
	})
	_, err := podKeeper(f).writeStatus(ctx, pod, status)
	return client.IgnoreNotFound(err)
}
