// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/model/inplace"
)

// sightings remembers the states of pods updated in place that events showed. A look comes too late for that: a kubelet replaces a
// container within milliseconds. All of it may be lost at any time; then some updates have to be proven otherwise.
type sightings struct {
	mu   sync.Mutex
	pods map[types.UID]inplace.Sighting
}

// Sighting returns what events showed of a pod.
func (r *Router) Sighting(pod types.UID) inplace.Sighting { return r.sightings.of(pod) }

// of returns the sighting of a pod; an empty one if there is none.
func (s *sightings) of(pod types.UID) inplace.Sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[pod]
}

// see updates the sighting of a pod.
func (s *sightings) see(o client.Object) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.pods[pod.UID].See(pod)
	switch {
	case seen.Empty():
		delete(s.pods, pod.UID)
	case s.pods == nil:
		s.pods = map[types.UID]inplace.Sighting{pod.UID: seen}
	default:
		s.pods[pod.UID] = seen
	}
}

// forget drops the sighting of a deleted pod.
func (s *sightings) forget(pod types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, pod)
}

// podWatch updates the sighting of the pod of each event before it wakes the sets that the pod concerns.
type podWatch struct {
	wakeUp
}

// Create implements handler.EventHandler.
func (w podWatch) Create(ctx context.Context, e event.CreateEvent, q queue) {
	w.sightings.see(e.Object)
	w.wakeUp.Create(ctx, e, q)
}

// Update implements handler.EventHandler.
func (w podWatch) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // the deletion between the two was never seen
		w.sightings.forget(e.ObjectOld.GetUID())
		w.noteGone(ctx, e.ObjectOld)
	}
	w.sightings.see(e.ObjectNew)
	w.wakeUp.Update(ctx, e, q)
}

// Delete implements handler.EventHandler.
func (w podWatch) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	w.sightings.forget(e.Object.GetUID())
	w.noteGone(ctx, e.Object)
	w.wakeUp.Delete(ctx, e, q)
}

// noteGone notes that a pod of a set was deleted. It ignores pods of deleted sets, whose entries would never be dropped.
func (w podWatch) noteGone(ctx context.Context, pod client.Object) {
	key, ok := informer.SetOf(pod)
	if !ok {
		return
	}
	set := &v1beta1.RollSet{}
	err := w.Cache.Get(ctx, key, set, client.UnsafeDisableDeepCopy)
	if err == nil && metav1.IsControlledBy(pod, set) && set.Spec.PodIdentity != v1beta1.OrdinalIdentity {
		w.NoteGone(set.UID, pod.GetName())
	}
}
