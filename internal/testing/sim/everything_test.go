// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// everything is the state of all objects of a world without what differs between two runs: names, UIDs, versions and times.
type everything struct{ *World }

// String has a line for each object.
func (e everything) String() string {
	lines := []string{"pods " + e.Ending(), "revisions " + e.history()}
	for _, obj := range e.Store.Objects() {
		switch o := obj.(type) {
		case *corev1.PersistentVolumeClaim:
			lines = append(lines, fmt.Sprintf("claim of %s, %s, owned by %s, gone %t", o.Labels[v1beta1.PodIndexLabel],
				o.Spec.Resources.Requests.Storage(), e.owners(o.OwnerReferences), o.DeletionTimestamp != nil))
		case *policyv1.PodDisruptionBudget:
			lines = append(lines, fmt.Sprintf("budget %s, %s, %s, owned by %s", o.Name, o.Spec.MinAvailable, o.Spec.MaxUnavailable, e.owners(o.OwnerReferences)))
		case *v1beta1.RollSet:
			lines = append(lines, e.status(&o.Status))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// history returns what the revisions hold, oldest first.
func (e everything) history() string {
	kept := slices.Collect(apiserver.Each[*appsv1.ControllerRevision](e.Store))
	slices.SortFunc(kept, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	var history []string
	for _, r := range kept {
		_, rejected := r.Annotations[revision.RejectedAnnotation]
		history = append(history, fmt.Sprintf("%s rejected %t", e.Readable(r.Name), rejected))
	}
	return strings.Join(history, ", ")
}

// owners returns the kinds of an object's owners, and whether they exist.
func (e everything) owners(refs []metav1.OwnerReference) string {
	var kinds []string
	for _, ref := range refs {
		kinds = append(kinds, fmt.Sprintf("%s %t", ref.Kind, e.Store.ByUID(ref.UID) != nil))
	}
	return strings.Join(kinds, " ")
}

// status returns a status without names and times.
func (e everything) status(s *v1beta1.RollSetStatus) string {
	var conditions []string
	for _, c := range s.Conditions {
		conditions = append(conditions, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	return fmt.Sprintf("status %d/%d/%d of %d, updated %d/%d/%d, %s to %s, %s", s.AvailableReplicas, s.ReadyReplicas, s.Replicas,
		s.ObservedGeneration, s.UpdatedAvailableReplicas, s.UpdatedReadyReplicas, s.UpdatedReplicas,
		e.Readable(s.CurrentRevision), e.Readable(s.UpdateRevision), strings.Join(conditions, ", "))
}

// madeAndDeleted counts what managers created and deleted.
func madeAndDeleted(store *apiserver.Store) map[string]int {
	count := map[string]int{}
	log := store.Log()
	for i := range log {
		e := &log[i]
		if strings.HasPrefix(e.Actor, managerActor) && (e.Verb == apiserver.Create || e.Verb == apiserver.Delete) {
			count[string(e.Verb)+" "+string(e.Key.Kind)]++
		}
	}
	return count
}
