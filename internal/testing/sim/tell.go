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
		read("status", reader.status),
		read("revisions", reader.revisions),
		read("names", reader.names),
		read("data", reader.claims),
		{"cause", 1, cause},
	}
}

// reader is a user who reads. What it reads goes into the strip.
type reader struct{ *World }

// read returns a command by which a user reads something.
func read(name string, what func(reader)) command {
	return command{name, 0, func(_ context.Context, w *World, _ []string) error { what(reader{w}); return nil }}
}

// status puts the conditions of the set and the message of Progressing into the strip. A status of an earlier spec can read like
// one that is up to date, so the strip says which it is.
func (r reader) status() {
	set := r.Set()
	if set == nil {
		return
	}
	var conditions []string
	for _, c := range set.Status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	r.Film.tell(strings.Join(conditions, ", "))
	if c := meta.FindStatusCondition(set.Status.Conditions, "Progressing"); c != nil {
		r.Film.tell(r.withoutNames(c.Message))
	}
	if set.Status.ObservedGeneration != set.Generation {
		r.Film.tell("the status is of an earlier spec")
	}
}

// names puts the number of pods that the managers created into the strip, and the number of their names.
func (r reader) names() {
	names, pods := make(map[string]int), 0
	for e := range r.Store.History(apiserver.Pods) {
		if e.Old == nil && strings.HasPrefix(e.Actor, managerActor) {
			names[e.Key.Name]++
			pods++
		}
	}
	r.Film.tell(fmt.Sprintf("%d pods, %d names", pods, len(names)))
}

// withoutNames replaces the names of pods and revisions by identities and versions.
func (r reader) withoutNames(text string) string {
	for _, pod := range r.Pods() {
		text = strings.ReplaceAll(text, pod.Name, r.Name(pod))
	}
	return r.Readable(text)
}

// revisions puts the revisions into the strip, oldest first.
func (r reader) revisions() {
	kept := slices.Collect(apiserver.Each[*appsv1.ControllerRevision](r.Store))
	slices.SortFunc(kept, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), strings.Compare(a.Name, b.Name))
	})
	for _, k := range kept {
		text := fmt.Sprintf("revision %d is %s", k.Revision, r.Readable(k.Name))
		if why := k.Annotations[changeCause]; why != "" {
			text += ": " + why
		}
		if verdict := k.Annotations[revision.RejectedAnnotation]; verdict != "" {
			text += " (rejected: " + verdict + ")"
		}
		r.Film.tell(text)
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

// claims puts the claims into the strip, each named by the first pod that mounted it.
func (r reader) claims() {
	first := map[types.UID]string{}
	for e := range r.Store.History(apiserver.Pods) {
		pod, ok := e.New.(*corev1.Pod)
		if !ok {
			continue
		}
		for _, key := range invariants.ClaimsOf(pod) {
			if claim := r.Store.Get(key); claim != nil && first[claim.GetUID()] == "" && !claim.GetCreationTimestamp().After(pod.CreationTimestamp.Time) {
				first[claim.GetUID()] = fmt.Sprintf("%s of %s", strings.TrimSuffix(key.Name, "-"+pod.Name), r.Name(pod))
			}
		}
	}
	var all []string
	for claim := range apiserver.Each[*corev1.PersistentVolumeClaim](r.Store) {
		all = append(all, cmp.Or(first[claim.UID], claim.Name))
	}
	slices.Sort(all)
	r.Film.tell("claims: " + strings.Join(all, ", "))
}
