// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/simulator/apiserver"
	"rollset.dev/rollset/internal/testing/sim/invariants"
)

// changeCause is the annotation that "kubectl rollout history" shows.
const changeCause = "kubernetes.io/change-cause"

// tellCommands returns the commands that put what users can read into the strip, and the one that writes the cause of a
// change.
func tellCommands() []command {
	return []command{
		{"status", 0, func(_ context.Context, w *World, _ []string) error { w.tellStatus(); return nil }},
		{"revisions", 0, func(_ context.Context, w *World, _ []string) error { w.tellRevisions(); return nil }},
		{"names", 0, func(_ context.Context, w *World, _ []string) error { w.tellNames(); return nil }},
		{"data", 0, func(_ context.Context, w *World, _ []string) error { w.tellData(); return nil }},
		{"cause", 1, cause},
	}
}

// tellStatus puts the conditions of the set and the message of Progressing into the strip. A status of an earlier spec can read like
// one that is up to date, so the strip says which it is.
func (w *World) tellStatus() {
	set := w.Set()
	if set == nil {
		return
	}
	var conditions []string
	for _, c := range set.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	w.Film.tell(strings.Join(conditions, ", "))
	if c := meta.FindStatusCondition(set.Status.Conditions, "Progressing"); c != nil {
		w.Film.tell(w.withoutNames(c.Message))
	}
	if set.Status.ObservedGeneration != set.Generation {
		w.Film.tell("the status is of an earlier spec")
	}
}

// tellNames puts the number of pods that the managers created into the strip, and the number of their names.
func (w *World) tellNames() {
	names, pods := make(map[string]int), 0
	for e := range w.Store.History(apiserver.Pods) {
		if e.Old == nil && strings.HasPrefix(e.Actor, managerActor) {
			names[e.Key.Name]++
			pods++
		}
	}
	w.Film.tell(fmt.Sprintf("%d pods, %d names", pods, len(names)))
}

// withoutNames replaces the names of pods and revisions by identities and versions.
func (w *World) withoutNames(text string) string {
	for _, pod := range w.Pods() {
		text = strings.ReplaceAll(text, pod.Name, w.Name(pod))
	}
	return w.Readable(text)
}

// tellRevisions puts the revisions into the strip, oldest first.
func (w *World) tellRevisions() {
	kept := slices.Collect(apiserver.Each[*appsv1.ControllerRevision](w.Store))
	slices.SortFunc(kept, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), strings.Compare(a.Name, b.Name))
	})
	for _, r := range kept {
		text := fmt.Sprintf("revision %d is %s", r.Revision, w.Readable(r.Name))
		if why := r.Annotations[changeCause]; why != "" {
			text += ": " + why
		}
		if verdict := r.Annotations[revision.RejectedAnnotation]; verdict != "" {
			text += " (rejected: " + verdict + ")"
		}
		w.Film.tell(text)
	}
}

// tell adds a line that a user reads.
func (f *Film) tell(what string) {
	f.lines = append(f.lines, line{at: f.world.Now(), actor: "reads", what: what})
}

// cause annotates the set with the cause of the next change.
func cause(_ context.Context, w *World, args []string) error {
	why := strings.Join(args, " ")
	set := w.Set()
	if set == nil {
		metav1.SetMetaDataAnnotation(&w.draft.ObjectMeta, changeCause, why)
		return nil
	}
	w.note("cause " + why)
	return edit(w, set, func(s *v1beta1.RollSet) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, changeCause, why) })
}

// tellData puts the claims into the strip, each named by the first pod that mounted it.
func (w *World) tellData() {
	first := map[types.UID]string{}
	for e := range w.Store.History(apiserver.Pods) {
		pod, ok := e.New.(*corev1.Pod)
		if !ok {
			continue
		}
		for _, key := range invariants.ClaimsOf(pod) {
			if claim := w.Store.Get(key); claim != nil && first[claim.GetUID()] == "" && !claim.GetCreationTimestamp().After(pod.CreationTimestamp.Time) {
				first[claim.GetUID()] = fmt.Sprintf("%s of %s", strings.TrimSuffix(key.Name, "-"+pod.Name), w.Name(pod))
			}
		}
	}
	var all []string
	for claim := range apiserver.Each[*corev1.PersistentVolumeClaim](w.Store) {
		all = append(all, cmp.Or(first[claim.UID], claim.Name))
	}
	slices.Sort(all)
	w.Film.tell("claims: " + strings.Join(all, ", "))
}
