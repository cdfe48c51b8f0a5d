// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

// These are the reasons of events. StatefulSet and ReplicaSet have the first of them too.
const (
	SuccessfulCreate = "SuccessfulCreate"
	FailedCreate     = "FailedCreate"
	SuccessfulDelete = "SuccessfulDelete"
	SuccessfulUpdate = "SuccessfulUpdate"
	FailedDelete     = "FailedDelete"
	FailedUpdate     = "FailedUpdate"
	Adopted          = "Adopted"
	Released         = "Released"
	SelectorOverlap  = "SelectorOverlap"
	HookTimedOut     = "HookTimedOut"
)

// maxNote is the longest note that the API server accepts in an event.
const maxNote = 1024

// tell logs the writes and records an event for each kind of write.
func (w *writer) tell(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	if len(w.deleted) > 0 {
		names, why := w.describeDeletes(log)
		log.Info("deleted pods", "count", len(w.deleted), "pods", names, "reason", why)
		w.event(corev1.EventTypeNormal, SuccessfulDelete, "Delete", fmt.Sprintf("Deleted %s (%s)", names, why))
	}
	if failed := w.result.Deletes; failed.Err != nil {
		w.event(corev1.EventTypeWarning, FailedDelete, "Delete", failed.String())
	}
	if len(w.created) > 0 {
		names, why := w.describeCreates(log)
		log.Info("created pods", "count", len(w.created), "pods", names, "reason", why)
		w.event(corev1.EventTypeNormal, SuccessfulCreate, "Create", fmt.Sprintf("Created %s (%s; %d wanted)", names, why, w.snap.Limits.Replicas))
	}
	if failed := w.result.Creates; failed.Err != nil {
		w.event(corev1.EventTypeWarning, FailedCreate, "Create", failed.String())
	}
	w.tellUpdates(log)
	w.tellPassed()
	for _, a := range w.kept {
		log.Info("changed claim", "change", a.String())
	}
	if failed := w.result.Claims; failed.Err != nil {
		w.event(corev1.EventTypeWarning, FailedUpdate, "Update", failed.String())
	}
}

// tellUpdates records which pods are now at another revision. The steps before and after that are only logged.
func (w *writer) tellUpdates(log logr.Logger) {
	var names, changes, adopted, released []string
	for _, c := range w.updated {
		if c.belonging() {
			log.Info("changed whose pod it is", "pod", c.pod.Name, "change", c.why)
			switch action.KeyOf(c.action).Verb {
			case attempt.Adopting:
				adopted = append(adopted, c.pod.Name)
			case attempt.Releasing:
				released = append(released, c.pod.Name)
			default: // a relabel changes nothing in the pod's containers
			}
			continue
		}
		log.V(1).Info("changed pod", "pod", c.pod.Name, "reason", c.why)
		if done := doneInPlace(c); done != "" {
			names, changes = append(names, c.pod.Name), append(changes, done)
		}
	}
	if len(names) > 0 {
		log.Info("updated pods in place", "count", len(names), "pods", Listed(names), "change", distinct(changes))
		w.event(corev1.EventTypeNormal, SuccessfulUpdate, "Update", fmt.Sprintf("Updated %s in place (%s)", Listed(names), distinct(changes)))
	}
	if len(adopted) > 0 {
		w.event(corev1.EventTypeNormal, Adopted, "Adopt", fmt.Sprintf("Adopted %s, which no controller had", Listed(adopted)))
	}
	if len(released) > 0 {
		w.event(corev1.EventTypeNormal, Released, "Release", fmt.Sprintf("Released %s, which the selector does not match", Listed(released)))
	}
	if failed := w.result.Updates; failed.Err != nil {
		w.event(corev1.EventTypeWarning, FailedUpdate, "Update", failed.String())
	}
}

// doneInPlace returns the update in place that a write ends; empty if it ends none. A pod that needs other resources is updated
// once the API server has accepted them.
func doneInPlace(c change) string {
	if a, ok := c.action.(action.UpdateInPlace); ok && !a.Change.NeedsResize(c.pod) {
		return a.Change.String()
	}
	if a, ok := c.action.(action.Resize); ok {
		return a.Change
	}
	return ""
}

// tellPassed records which pods no longer wait for a lifecycle hook that has passed its limit.
func (w *writer) tellPassed() {
	var names, hooks []string
	pass := func(pod *corev1.Pod, passed snapshot.Passed) {
		if passed.Hook != "" {
			names, hooks = append(names, pod.Name), append(hooks, passed.String())
		}
	}
	for _, a := range w.deleted {
		pass(a.Pod, a.Passed)
	}
	for _, c := range w.updated {
		if a, ok := c.action.(action.UpdateInPlace); ok {
			pass(a.Pod, a.Passed)
		}
		if a, ok := c.action.(action.SetState); ok {
			pass(a.Pod, a.Passed)
		}
	}
	if len(names) > 0 {
		w.event(corev1.EventTypeWarning, HookTimedOut, "Proceed", fmt.Sprintf("Went on with %s %s", Listed(names), distinct(hooks)))
	}
}

func (w *writer) event(eventType, reason, verb, note string) {
	w.Events.Eventf(w.set, nil, eventType, reason, verb, "%s", Short(note))
}

// Short returns as much of a note as the API server accepts.
func Short(note string) string {
	if len(note) <= maxNote {
		return note
	}
	return strings.ToValidUTF8(note[:maxNote-len("…")], "") + "…"
}

func (w *writer) describeDeletes(log logr.Logger) (names, why string) {
	pods := make([]string, len(w.deleted))
	reasons := make([]string, len(w.deleted))
	for i, a := range w.deleted {
		pods[i], reasons[i] = a.Pod.Name, a.Reason
		if a.To != "" { // it would look like a pod's name
			reasons[i] = strings.Replace(a.Reason, a.To, "revision "+a.To, 1)
		}
		log.V(1).Info("deleted pod", "pod", a.Pod.Name, "reason", a.Reason)
	}
	return Listed(pods), distinct(reasons)
}

func (w *writer) describeCreates(log logr.Logger) (names, why string) {
	pods := make([]string, len(w.created))
	reasons := make([]string, len(w.created))
	for i, a := range w.created {
		pods[i], reasons[i] = w.snap.PodName(a.ID), fmt.Sprintf("%s, at revision %s", a.Reason, a.Revision)
		log.V(1).Info("created pod", "pod", pods[i], "revision", a.Revision, "reason", a.Reason)
	}
	return Listed(pods), distinct(reasons)
}

// maxNamed is the maximum number of pods that an event names.
const maxNamed = 5

// Listed lists the names of pods, only the first ones if there are many.
func Listed(pods []string) string {
	switch n := len(pods); {
	case n == 1:
		return "pod " + pods[0]
	case n <= maxNamed:
		return fmt.Sprintf("%d pods %s and %s", n, strings.Join(pods[:n-1], ", "), pods[n-1])
	default:
		return fmt.Sprintf("%d pods %s and %d more", n, strings.Join(pods[:maxNamed], ", "), n-maxNamed)
	}
}

// maxReasons is the maximum number of reasons that an event gives.
const maxReasons = 3

// distinct lists the distinct reasons, only the first ones if there are many.
func distinct(reasons []string) string {
	var all []string
	for _, r := range reasons {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	if len(all) <= maxReasons {
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%s; and %d more reasons", strings.Join(all[:maxReasons], "; "), len(all)-maxReasons)
}
