// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/action"
)

// The reasons of events; they are those of StatefulSet and ReplicaSet.
const (
	SuccessfulCreate = "SuccessfulCreate"
	FailedCreate     = "FailedCreate"
	SuccessfulDelete = "SuccessfulDelete"
	SuccessfulUpdate = "SuccessfulUpdate"
	FailedDelete     = "FailedDelete"
	FailedUpdate     = "FailedUpdate"
)

// maxNote is the longest note that the API server takes in an event.
const maxNote = 1024

// tell logs what was written and tells users of it: one line and one event for each kind of write.
func (w *writer) tell(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	if len(w.deleted) > 0 {
		names, why := w.describeDeletes(log)
		log.Info("deleted pods", "count", len(w.deleted), "pods", names, "reason", why)
		w.event(corev1.EventTypeNormal, SuccessfulDelete, "Delete", fmt.Sprintf("Deleted %s (%s)", counted(len(w.deleted), names), why))
	}
	if failed := w.result.Deletes; failed.Err != nil {
		w.event(corev1.EventTypeWarning, FailedDelete, "Delete", failed.String())
	}
	if len(w.created) > 0 {
		names, why := w.describeCreates(log)
		log.Info("created pods", "count", len(w.created), "pods", names, "reason", why)
		w.event(corev1.EventTypeNormal, SuccessfulCreate, "Create", fmt.Sprintf("Created %s (%s)", counted(len(w.created), names), why))
	}
	if failed := w.result.Creates; failed.Err != nil {
		w.event(corev1.EventTypeWarning, FailedCreate, "Create", failed.String())
	}
	w.tellUpdates(log)
	for _, a := range w.kept {
		log.Info("changed claim", "change", a.String())
	}
	if failed := w.result.Claims; failed.Err != nil {
		w.event(corev1.EventTypeWarning, FailedUpdate, "Update", failed.String())
	}
}

// tellUpdates tells users which pods are now of another revision. The steps before and after that are for the log only.
func (w *writer) tellUpdates(log logr.Logger) {
	var names, changes []string
	for _, c := range w.updated {
		if c.belonging() {
			log.Info("changed whose pod it is", "pod", c.pod.Name, "change", c.why)
			continue
		}
		log.V(1).Info("changed pod", "pod", c.pod.Name, "reason", c.why)
		if a, ok := c.action.(action.UpdateInPlace); ok {
			names = append(names, c.pod.Name)
			changes = append(changes, a.Change.String())
		}
	}
	if len(names) > 0 {
		log.Info("updated pods in place", "count", len(names), "pods", fromTo(names), "change", distinct(changes))
		note := fmt.Sprintf("Updated %s in place (%s)", counted(len(names), fromTo(names)), distinct(changes))
		w.event(corev1.EventTypeNormal, SuccessfulUpdate, "Update", note)
	}
	if failed := w.result.Updates; failed.Err != nil {
		w.event(corev1.EventTypeWarning, FailedUpdate, "Update", failed.String())
	}
}

func (w *writer) event(eventType, reason, verb, note string) {
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote-len("…")], "") + "…"
	}
	w.Events.Eventf(w.set, nil, eventType, reason, verb, "%s", note)
}

func (w *writer) describeDeletes(log logr.Logger) (names, why string) {
	pods := make([]string, len(w.deleted))
	reasons := make([]string, len(w.deleted))
	for i, a := range w.deleted {
		pods[i], reasons[i] = a.Pod.Name, a.Reason
		log.V(1).Info("deleted pod", "pod", a.Pod.Name, "reason", a.Reason)
	}
	return fromTo(pods), distinct(reasons)
}

func (w *writer) describeCreates(log logr.Logger) (names, why string) {
	pods := make([]string, len(w.created))
	reasons := make([]string, len(w.created))
	for i, a := range w.created {
		pods[i], reasons[i] = w.observation.PodName(a.ID), a.Reason
		log.V(1).Info("created pod", "pod", pods[i], "revision", a.Revision, "reason", a.Reason)
	}
	return fromTo(pods), distinct(reasons)
}

// fromTo names the first and the last of several pods.
func fromTo(pods []string) string {
	if len(pods) == 1 {
		return pods[0]
	}
	return pods[0] + "…" + pods[len(pods)-1]
}

func counted(n int, names string) string {
	if n == 1 {
		return "pod " + names
	}
	return fmt.Sprintf("%d pods %s", n, names)
}

// String says why the first write failed, and how many did.
func (t *Tally) String() string {
	if t.Failed == 1 {
		return t.Err.Error()
	}
	return fmt.Sprintf("%d writes: %s", t.Failed, t.Err)
}

// distinct is the first reason, and how many others there are.
func distinct(reasons []string) string {
	seen := map[string]bool{}
	for _, r := range reasons {
		seen[r] = true
	}
	if len(seen) == 1 {
		return reasons[0]
	}
	return fmt.Sprintf("%s, and %d other reasons", reasons[0], len(seen)-1)
}
