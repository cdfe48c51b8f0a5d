// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete deletes an object, or begins to: a pod on a node stays until its kubelet deletes it with grace period 0, and
// anything stays until its finalizers are gone.
func (s *Store) Delete(w Write) error {
	w.Verb = Delete
	old, err := s.find(w.Key)
	if err != nil {
		return err
	}
	if p := w.DeleteOptions.Preconditions; p != nil {
		if p.UID != nil && *p.UID != old.GetUID() {
			return conflict(w.Key, "Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, old.GetUID())
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
			return conflict(w.Key, "Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v",
				*p.ResourceVersion, old.GetResourceVersion())
		}
	}
	if err := (admitter{s}).admit(&w, old); err != nil {
		return err
	}
	if w.DryRun {
		return nil
	}
	obj := Clone(old)
	setPropagation(obj, w.DeleteOptions.PropagationPolicy)
	grace := gracePeriod(obj, w.DeleteOptions.GracePeriodSeconds)
	changed := !slices.Equal(old.GetFinalizers(), obj.GetFinalizers())
	switch {
	case grace == 0 && len(obj.GetFinalizers()) == 0 && changed && insistsOnVersion(w):
		// The API server compares with a version that it never wrote.
		return conflict(w.Key, "Precondition failed: ResourceVersion in precondition: , ResourceVersion in object meta: %v",
			old.GetResourceVersion())
	case grace == 0 && len(obj.GetFinalizers()) == 0:
		s.commit(w, old, nil)
	case old.GetDeletionTimestamp() == nil:
		markDeleted(obj, grace, s.Stamp())
		s.commit(w, old, obj)
	case grace < *old.GetDeletionGracePeriodSeconds():
		deadline := metav1.NewTime(old.GetDeletionTimestamp().Add(
			time.Duration(grace-*old.GetDeletionGracePeriodSeconds()) * time.Second))
		obj.SetDeletionTimestamp(&deadline)
		obj.SetDeletionGracePeriodSeconds(&grace)
		s.commit(w, old, obj)
	case changed:
		s.commit(w, old, obj)
	}
	return nil
}

// markDeleted begins the deletion: the time is when the grace period ends.
func markDeleted(obj client.Object, grace int64, now metav1.Time) {
	at := metav1.NewTime(now.Add(time.Duration(grace) * time.Second))
	obj.SetDeletionTimestamp(&at)
	obj.SetDeletionGracePeriodSeconds(&grace)
	if obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
}

// gracePeriod returns the time that a pod on a node gets. Nothing else has any.
func gracePeriod(obj client.Object, asked *int64) int64 {
	pod, ok := obj.(*corev1.Pod)
	switch {
	case !ok, pod.Spec.NodeName == "", HasEnded(pod):
		return 0
	case asked != nil:
		return *asked
	case pod.DeletionGracePeriodSeconds != nil:
		return *pod.DeletionGracePeriodSeconds
	default:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
}

// insistsOnVersion reports whether a delete has a resource version as precondition.
func insistsOnVersion(w Write) bool {
	return w.DeleteOptions.Preconditions != nil && w.DeleteOptions.Preconditions.ResourceVersion != nil
}

// setPropagation sets the finalizers by which the garbage collector knows how to proceed, as the API server does.
func setPropagation(obj client.Object, policy *metav1.DeletionPropagation) {
	if policy == nil {
		return
	}
	finalizers := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	switch *policy {
	case metav1.DeletePropagationOrphan:
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationBackground:
	}
	obj.SetFinalizers(finalizers)
}
