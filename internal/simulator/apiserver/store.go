// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store is the API server and its database: objects by key, and the log of every write.
//
// Stored objects are never changed: a write stores another one. Views and the log can therefore share them, and only
// what a client receives is copied.
type Store struct {
	// MaxPods is the quota of pods that have neither failed nor succeeded; negative means none.
	MaxPods int
	// MaxCPU is the quota of the CPU that they request; nil means none.
	MaxCPU *resource.Quantity
	// Elsewhere are owners that exist though they are not in the store.
	Elsewhere map[types.UID]bool
	// Admission is the list of functions that see every object before it is written, in this order.
	Admission []Admission

	journal
	uids

	now         func() time.Time
	objects     map[Key]client.Object
	byUID       map[types.UID]Key
	owned       dependents
	terminating map[string]bool
	rv          int64
	garbage     []Key
	observers   []func(*Entry)
	// rewritten counts the writes whose metadata admission changed.
	rewritten int
}

// Admission may refuse a write by an error, or change the object that is about to be stored.
type Admission func(verb Verb, obj client.Object) error

// NewStore returns an empty store that takes the time from now.
func NewStore(now func() time.Time) *Store {
	return &Store{
		MaxPods:     -1,
		now:         now,
		rv:          1, // no list is ever at version 0
		objects:     make(map[Key]client.Object),
		byUID:       make(map[types.UID]Key),
		owned:       make(dependents),
		terminating: make(map[string]bool),
		journal:     journal{byKind: make(map[Kind][]int)},
	}
}

// OnWrite adds a function that sees every entry of the log as soon as it is written.
func (s *Store) OnWrite(f func(*Entry)) { s.observers = append(s.observers, f) }

// TerminateNamespace makes the API server refuse every create in a namespace from now on.
func (s *Store) TerminateNamespace(namespace string) { s.terminating[namespace] = true }

// Get returns an object, or nil. It belongs to the store and must not be changed.
func (s *Store) Get(key Key) client.Object { return s.objects[key] }

// Each yields the objects of a type, in no order.
func Each[T client.Object](s *Store) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, obj := range s.objects {
			if typed, ok := obj.(T); ok && !yield(typed) {
				return
			}
		}
	}
}

// ByUID returns the object with a UID, or nil.
func (s *Store) ByUID(uid types.UID) client.Object {
	key, ok := s.byUID[uid]
	if !ok {
		return nil
	}
	return s.objects[key]
}

// Version returns the resource version of the newest write.
func (s *Store) Version() int64 { return s.rv }

// find returns an object or the error that the API server has for its absence.
func (s *Store) find(key Key) (client.Object, error) {
	obj, ok := s.objects[key]
	if !ok {
		return nil, apierrors.NewNotFound(GroupResource(key.Kind), key.Name)
	}
	return obj, nil
}

// commit stores an object in place of old and appends the write to the log. Either of old and obj may be nil.
func (s *Store) commit(w Write, old, obj client.Object) {
	if obj != nil {
		obj.SetResourceVersion(strconv.FormatInt(s.rv+1, 10))
	}
	entry := s.Record(Entry{Version: s.rv + 1, At: s.now(), Write: w, Old: old, New: obj})
	collector{s}.soil(w.Key, old, obj)
	for _, f := range s.observers {
		f(entry)
	}
}

// uidFormat is the format of all generated UIDs.
const uidFormat = "00000000-0000-4000-8000-%012d"

// uids counts the UIDs that were given out.
type uids struct{ last int64 }

// newUID returns the next UID. UIDs count up, so that every run has the same ones.
func (u *uids) newUID() types.UID {
	u.last++
	return types.UID(fmt.Sprintf(uidFormat, u.last))
}

// reserveUID prevents the UID of a loaded object from being generated again.
func (u *uids) reserveUID(uid types.UID) {
	var n int64
	if _, err := fmt.Sscanf(string(uid), uidFormat, &n); err == nil {
		u.last = max(u.last, n)
	}
}

// Stamp returns the time as the API server writes it: in whole seconds.
func (s *Store) Stamp() metav1.Time { return metav1.NewTime(s.now().UTC().Truncate(time.Second)) }

// dependents maps an owner's UID to the objects that name it as an owner.
type dependents map[types.UID]map[Key]struct{}

func (d dependents) update(key Key, old, obj client.Object) {
	if old != nil {
		for _, ref := range old.GetOwnerReferences() {
			delete(d[ref.UID], key)
		}
	}
	if obj == nil {
		return
	}
	for _, ref := range obj.GetOwnerReferences() {
		if d[ref.UID] == nil {
			d[ref.UID] = make(map[Key]struct{})
		}
		d[ref.UID][key] = struct{}{}
	}
}
