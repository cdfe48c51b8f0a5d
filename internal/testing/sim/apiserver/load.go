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

// StateAt returns every object as it was at a resource version, in a fixed order.
func (s *Store) StateAt(version int64) []client.Object {
	var objs []client.Object
	for _, kind := range Kinds() {
		state, _ := s.at(kind, version)
		for _, key := range sortedKeys(state, nil) {
			objs = append(objs, state[key])
		}
	}
	return objs
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
