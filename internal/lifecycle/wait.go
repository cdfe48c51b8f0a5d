// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/snapshot"
)

// wait says which hook a pod waits for in a state, and for how long.
type wait struct {
	hook

	// mark is the mark that the pod is to get, or to lose if gone is true; empty if the pod waits for nothing.
	mark string
	gone bool
	// since is when the pod entered the state; zero if it is in another one, or if nothing says when.
	since time.Time
	now   time.Time
}

// waitIn returns what a pod waits for at a time, now that it is in a state or is to enter it.
func waitIn(spec *v1beta1.RollSetSpec, pod *corev1.Pod, state v1beta1.LifecycleState, now time.Time) wait {
	w := wait{hook: hookOf(spec, state), now: now}
	if w.LifecycleHook == nil {
		return w
	}
	switch state {
	case v1beta1.LifecyclePreparingNormal, v1beta1.LifecycleUpdated:
		w.mark = w.missing(pod)
	case v1beta1.LifecyclePreparingUpdate, v1beta1.LifecyclePreparingDelete:
		w.mark, w.gone = w.present(pod), true
	case v1beta1.LifecycleNormal, v1beta1.LifecycleUpdating:
	}
	if w.mark != "" {
		w.since = since(pod, state, now)
	}
	return w
}

// Wait describes what a pod waits for in its state, and reports whether it has waited for longer than it may. The text is
// empty if the pod waits for nothing, or no longer waits.
func Wait(spec *v1beta1.RollSetSpec, pod *corev1.Pod, now time.Time) (what string, overdue bool) {
	w := waitIn(spec, pod, StateOf(spec, pod), now)
	if w.mark == "" || w.proceeds() {
		return "", false
	}
	return w.String(), w.overdue()
}

// limit returns how long a pod may wait; zero if there is no limit.
func (w wait) limit() time.Duration {
	if w.LifecycleHook == nil || w.TimeoutSeconds == nil || *w.TimeoutSeconds <= 0 {
		return 0
	}
	return time.Duration(*w.TimeoutSeconds) * time.Second
}

// left returns how much longer a pod may wait; not positive if it may not, or if there is no limit.
func (w wait) left() time.Duration {
	if w.limit() == 0 || w.since.IsZero() {
		return 0
	}
	return w.since.Add(w.limit()).Sub(w.now)
}

// overdue reports whether a pod has waited for longer than it may.
func (w wait) overdue() bool {
	return w.mark != "" && w.limit() > 0 && !w.since.IsZero() && w.left() <= 0
}

// unrecorded reports whether nothing says since when a pod has waited, although the wait has a limit. A manager that knows no
// limits prepared the pod, or another client changed the label or the annotation.
func (w wait) unrecorded() bool { return w.mark != "" && w.limit() > 0 && w.since.IsZero() }

// proceeds reports whether a pod continues although its hook has not released it. The API server refuses to combine this with
// finalizers, but an object may be older than that validation.
func (w wait) proceeds() bool {
	return w.overdue() && w.OnTimeout == v1beta1.ProceedOnTimeout && len(w.FinalizersHandler) == 0
}

// passed returns the hook for a pod that goes on without it; zero if the pod waits.
func (w wait) passed() snapshot.Passed {
	if !w.proceeds() {
		return snapshot.Passed{}
	}
	why := w.mark + " is missing"
	if w.gone {
		why = w.mark + " is still there"
	}
	return snapshot.Passed{Hook: w.name, Seconds: *w.TimeoutSeconds, Why: why}
}

// kind returns the kind of the hold.
func (w wait) kind() action.HoldKind {
	if w.overdue() {
		return action.HeldByTimeout
	}
	return action.HeldByHook
}

// String describes the wait. The text changes only when the limit passes.
func (w wait) String() string {
	what, remedy := "for "+w.mark, "add it"
	if w.gone {
		what, remedy = "until "+w.mark+" is gone", "remove it"
	}
	switch {
	case w.overdue() && len(w.FinalizersHandler) > 0:
		remedy += ", or take the hook out of the spec"
	case w.overdue():
		remedy += ", or set onTimeout to Proceed"
	case w.left() > 0 && w.OnTimeout == v1beta1.ProceedOnTimeout:
		return fmt.Sprintf("lifecycle hook %s waits %s, at most until %s", w.name, what, clockTime(w.since.Add(w.limit())))
	default:
		return fmt.Sprintf("lifecycle hook %s waits %s", w.name, what)
	}
	return fmt.Sprintf("lifecycle hook %s has waited since %s, longer than its limit of %d seconds, %s: %s",
		w.name, clockTime(w.since), *w.TimeoutSeconds, what, remedy)
}

// clockTime returns a time as the API writes it.
func clockTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
