// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Load stores objects as they are, with their UIDs, times and status. Nothing is defaulted or validated.
func (s *Store) Load(objs ...client.Object) {
	for _, obj := range objs {
		s.reserveUID(obj.GetUID())
		s.commit(Write{Actor: "past", Verb: Create, Key: KeyOf(obj)}, nil, Clone(obj))
	}
	s.garbage = nil
}

// Record appends a write that another API server has committed, with its version, time and objects. Versions must increase.
func (s *Store) Record(e Entry) *Entry {
	s.rv = e.Version
	if e.New != nil {
		s.objects[e.Key], s.byUID[e.New.GetUID()] = e.New, e.Key
	} else {
		delete(s.objects, e.Key)
		delete(s.byUID, e.Old.GetUID())
	}
	s.owned.update(e.Key, e.Old, e.New)
	s.log = append(s.log, e)
	s.byKind[e.Key.Kind] = append(s.byKind[e.Key.Kind], len(s.log)-1)
	return &s.log[len(s.log)-1]
}

// Objects returns every object as it is now, in a fixed order.
func (s *Store) Objects() []client.Object {
	var objs []client.Object
	keys := sortedKeys(s.objects, nil)
	for _, kind := range Kinds() {
		for _, key := range keys {
			if key.Kind == kind {
				objs = append(objs, s.objects[key])
			}
		}
	}
	return objs
}

// Of returns every object of a kind as it is now, in a fixed order.
func (s *Store) Of(kind Kind) []client.Object {
	found := make(map[Key]client.Object)
	for key, obj := range s.objects {
		if key.Kind == kind {
			found[key] = obj
		}
	}
	objs := make([]client.Object, 0, len(found))
	for _, key := range sortedKeys(found, nil) {
		objs = append(objs, found[key])
	}
	return objs
}

// Show replaces an object, in the store and in the log, without a write: another version of the API server reads the same
// bytes differently.
func (s *Store) Show(old, shown client.Object) {
	s.objects[KeyOf(old)] = shown
	for e := range s.History(KeyOf(old).Kind) {
		if e.New == old {
			e.New = shown
		}
	}
}
