// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/snapshot"
)

const (
	// maxRecord bounds the length of an annotation that is read.
	maxRecord = 128
	// ahead is how far ahead of this manager's clock that of an earlier manager may have been. A record from further ahead
	// counts for nothing, or it would hold the pod for as long as it says.
	ahead = time.Minute
)

// record is the content of the annotation about the state of a pod.
type record struct {
	since time.Time
	// passed is the hook that the pod did not wait for when it entered the state, and seconds its limit.
	passed  string
	seconds int32
}

// Record returns the annotation of a pod that enters a state at a time, perhaps without waiting for a hook any longer.
func Record(state v1beta1.LifecycleState, at time.Time, passed snapshot.Passed) string {
	value := string(state) + " " + clockTime(at)
	if passed.Hook != "" {
		value += fmt.Sprintf(" %s %d", passed.Hook, passed.Seconds)
	}
	return value
}

// recordOf returns what the annotation of a pod says about the state that the pod is in; false if it says nothing.
func recordOf(pod *corev1.Pod) (r record, ok bool) {
	value := pod.Annotations[v1beta1.LifecycleSinceAnnotation]
	if len(value) > maxRecord {
		return record{}, false
	}
	fields := strings.Fields(value)
	if len(fields) != 2 && len(fields) != 4 || fields[0] != pod.Labels[v1beta1.LifecycleStateLabel] {
		return record{}, false
	}
	var err error
	if r.since, err = time.Parse(time.RFC3339, fields[1]); err != nil {
		return record{}, false
	}
	if len(fields) == 4 {
		seconds, err := strconv.ParseInt(fields[3], 10, 32)
		if err != nil {
			return record{}, false
		}
		r.passed, r.seconds = fields[2], int32(seconds)
	}
	return r, true
}

// since returns when a pod entered the state that it is in; zero if it is in another one, or if nothing says when. A pod is
// created as PreparingNormal.
func since(pod *corev1.Pod, state v1beta1.LifecycleState, now time.Time) time.Time {
	if pod.Labels[v1beta1.LifecycleStateLabel] != string(state) {
		return time.Time{}
	}
	r, ok := recordOf(pod)
	switch {
	case ok && !r.since.After(now.Add(ahead)):
		return r.since
	case state == v1beta1.LifecyclePreparingNormal:
		return pod.CreationTimestamp.Time
	default:
		return time.Time{}
	}
}

// Passed returns the hook that a pod went on without, as long as the pod shows that: while it terminates, while it is
// updated, and while it lacks the marks of the hook. It is zero if there is none.
func Passed(spec *v1beta1.RollSetSpec, pod *corev1.Pod) snapshot.Passed {
	if spec.Lifecycle == nil {
		return snapshot.Passed{}
	}
	state := v1beta1.LifecycleState(pod.Labels[v1beta1.LifecycleStateLabel])
	if state == v1beta1.LifecyclePreparingDelete {
		return deletedWithout(spec, pod)
	}
	r, ok := recordOf(pod)
	if !ok || r.passed == "" {
		return snapshot.Passed{}
	}
	for _, used := range [...]hook{
		hookOf(spec, v1beta1.LifecyclePreparingNormal), hookOf(spec, v1beta1.LifecycleUpdating),
	} {
		if used.LifecycleHook == nil || used.name != r.passed {
			continue
		}
		if state == v1beta1.LifecycleUpdating && used.present(pod) != "" || state == v1beta1.LifecycleNormal && used.missing(pod) != "" {
			return snapshot.Passed{Hook: r.passed, Seconds: r.seconds}
		}
	}
	return snapshot.Passed{}
}

// deletedWithout returns the hook preDelete if a pod was deleted when its wait for the hook had passed the limit.
func deletedWithout(spec *v1beta1.RollSetSpec, pod *corev1.Pod) snapshot.Passed {
	if pod.DeletionTimestamp == nil {
		return snapshot.Passed{}
	}
	at := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return waitIn(spec, pod, v1beta1.LifecyclePreparingDelete, at).passed()
}
