// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// How the simulator reads pods and revisions. It shares no code with the controller, so that it does not share its
// mistakes.

const (
	// The annotations of the controller: those of a revision that was proven or rejected, and of a pod that is updated in place.
	completed    = "apps.rollset.dev/completed"
	rejection    = "apps.rollset.dev/rejected"
	inPlaceState = "apps.rollset.dev/in-place-update"

	// answerTimeout is for how long a manager counts on a write that it has sent, and doubtTimeout on one that was not answered.
	answerTimeout = 5 * time.Minute
	doubtTimeout  = 10 * time.Second
)

// OwnerOf returns the UID of the object's controller; empty if it has none.
func OwnerOf(obj client.Object) types.UID {
	if obj == nil {
		return ""
	}
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return ref.UID
	}
	return ""
}

// IsReady reports whether the pod's condition Ready is True.
func IsReady(pod *corev1.Pod) bool {
	_, ok := readySince(pod)
	return ok
}

func readySince(pod *corev1.Pod) (since time.Time, ready bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// IsAvailable reports whether the pod is active and has been ready for long enough.
func IsAvailable(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	since, ready := readySince(pod)
	elapsed := max(0, now.Sub(since)) // a clock behind the kubelet's shows pods that become ready in the future
	return ready && IsActive(pod) && elapsed >= time.Duration(minReadySeconds)*time.Second
}

// unreadySince returns since when a pod that is not ready has not been ready.
func unreadySince(pod *corev1.Pod) time.Time {
	since, _ := readySince(pod)
	if made := pod.CreationTimestamp.Time; made.After(since) {
		return made
	}
	return since
}

// isTrue reports whether a condition of a pod is True.
func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == corev1.ConditionTrue })
}

// gateClosed reports whether a pod was taken out of service for an update in place, and since when.
func gateClosed(pod *corev1.Pod) (closed bool, since time.Time) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1beta1.InPlaceUpdateReady && c.Status != corev1.ConditionTrue {
			closed, since = true, c.LastTransitionTime.Time
		}
	}
	return closed, since
}

// IsActive reports whether the pod counts towards replicas.
func IsActive(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !apiserver.HasEnded(pod) }

// ordinal returns the ordinal in a pod's label; -1 if it has none.
func ordinal(pod *corev1.Pod) int { return numberOrNone(pod.Labels[v1beta1.PodIndexLabel]) }

func numberOrNone(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// matches reports whether the set selects an object.
func matches(set *v1beta1.RollSet, obj client.Object) bool {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(obj.GetLabels()))
}

// ClaimsOf returns the claims that a pod mounts.
func ClaimsOf(obj any) []apiserver.Key {
	if pod, ok := obj.(*corev1.Pod); ok {
		return apiserver.ClaimsOf(pod)
	}
	return nil
}

// within drops the times that are a window or longer before the last.
func within(times []time.Time, window time.Duration) []time.Time {
	last := times[len(times)-1]
	return slices.DeleteFunc(times, func(t time.Time) bool { return last.Sub(t) >= window })
}
