// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The garbage collector. Every write that can leave it something to do puts the object on its list, so that looking
// for work costs nothing when there is none.

// GCActor is the name under which the garbage collector writes.
const GCActor = "gc"

// collector collects garbage.
type collector struct{ *Store }

// soil lists what the garbage collector must check after a write.
func (s collector) soil(key Key, old, obj client.Object) {
	if obj == nil {
		s.garbage = append(s.garbage, s.dependentsOf(old.GetUID())...)
		s.soilOwners(old)
		return
	}
	if isHeldForDependents(obj) {
		s.garbage = append(s.garbage, key)
		s.garbage = append(s.garbage, s.dependentsOf(obj.GetUID())...)
	}
	for _, ref := range obj.GetOwnerReferences() {
		owner := s.ByUID(ref.UID)
		if owner == nil || isHeldForDependents(owner) {
			s.garbage = append(s.garbage, key)
		}
	}
	if old != nil {
		s.soilOwners(old)
	}
}

// soilOwners lists owners that wait for their dependents to be deleted.
func (s collector) soilOwners(obj client.Object) {
	for _, ref := range obj.GetOwnerReferences() {
		if owner := s.ByUID(ref.UID); owner != nil && isHeldForDependents(owner) {
			s.garbage = append(s.garbage, KeyOf(owner))
		}
	}
}

func isHeldForDependents(obj client.Object) bool {
	return obj.GetDeletionTimestamp() != nil && slices.ContainsFunc(obj.GetFinalizers(), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
}

// dependentsOf returns the objects that name an owner, in a fixed order.
func (s collector) dependentsOf(uid types.UID) []Key {
	keys := make([]Key, 0, len(s.owned[uid]))
	for key := range s.owned[uid] {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return keys
}

// HasGarbage reports whether the garbage collector has an object to check.
func (s *Store) HasGarbage() bool { return len(s.garbage) > 0 }

// Collect lets the garbage collector check one object. It makes at most one write.
func (s *Store) Collect() error {
	key := s.garbage[0]
	s.garbage = s.garbage[1:]
	obj := s.objects[key]
	switch {
	case obj == nil:
		return nil
	case isHeldForDependents(obj):
		return collector{s}.releaseOwner(key, obj)
	default:
		return collector{s}.collectDependent(key, obj)
	}
}

// releaseOwner orphans one dependent, or releases the owner when no dependent is left.
func (s collector) releaseOwner(key Key, owner client.Object) error {
	orphan := slices.Contains(owner.GetFinalizers(), metav1.FinalizerOrphanDependents)
	for _, k := range s.dependentsOf(owner.GetUID()) {
		dependent := s.objects[k]
		if orphan {
			s.garbage = append([]Key{key}, s.garbage...)
			return s.dropOwners(k, dependent, func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() })
		}
		if blocks(dependent, owner.GetUID()) {
			return nil // deleting it lists the owner again
		}
	}
	released := Clone(owner)
	released.SetFinalizers(slices.DeleteFunc(released.GetFinalizers(), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	}))
	_, err := s.Update(Write{Actor: GCActor}, released)
	return err
}

func blocks(dependent client.Object, owner types.UID) bool {
	return slices.ContainsFunc(dependent.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
	})
}

// collectDependent deletes an object whose last owner is gone, or is being deleted and waits for it.
func (s collector) collectDependent(key Key, obj client.Object) error {
	var solid, gone, waiting int
	for _, ref := range obj.GetOwnerReferences() {
		owner := s.ByUID(ref.UID)
		switch {
		case owner == nil && !s.Elsewhere[ref.UID]:
			gone++
		case owner == nil:
			solid++
		case slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents) && owner.GetDeletionTimestamp() != nil:
			waiting++
		default:
			solid++
		}
	}
	switch {
	case gone+waiting == 0, obj.GetDeletionTimestamp() != nil:
		return nil
	case solid > 0:
		return s.dropOwners(key, obj, func(ref metav1.OwnerReference) bool { return s.ByUID(ref.UID) == nil && !s.Elsewhere[ref.UID] })
	default:
		return s.Delete(Write{Actor: GCActor, Key: key, DeleteOptions: client.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: new(obj.GetUID())},
		}})
	}
}

func (s collector) dropOwners(key Key, obj client.Object, drop func(metav1.OwnerReference) bool) error {
	kept := Clone(obj)
	kept.SetOwnerReferences(slices.DeleteFunc(kept.GetOwnerReferences(), drop))
	_, err := s.Update(Write{Actor: GCActor, Key: key}, kept)
	return err
}
