// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Verb is the verb of a write.
type Verb string

// The verbs.
const (
	Create Verb = "create"
	Update Verb = "update"
	Patch  Verb = "patch"
	Delete Verb = "delete"
)

// Write is a request to write. The log keeps it as it was sent, so that a check can see its preconditions.
type Write struct {
	// Actor is the name of the writer: "user", "kubelet", "manager", ….
	Actor string
	// Verb is the verb of the request.
	Verb Verb
	// Key is the object.
	Key Key
	// Subresource is "status", "resize", or empty.
	Subresource string
	// DeleteOptions has the options of a delete.
	DeleteOptions client.DeleteOptions
	// Body is the patch of a patch.
	Body []byte
	// DryRun writes change nothing and are not logged.
	DryRun bool
	// Sent is the object as it was sent, if admission changed its metadata, or the status of a set; else nil.
	Sent client.Object
}

// String names the write for errors and film strips.
func (w Write) String() string {
	var b strings.Builder
	b.WriteString(string(w.Verb) + " " + w.Key.String())
	if w.Subresource != "" {
		b.WriteString("/" + w.Subresource)
	}
	if w.DryRun {
		b.WriteString(" (dry run)")
	}
	return b.String()
}

// Entry is a committed write: one resource version.
type Entry struct {
	Write

	// Version is the resource version of the write.
	Version int64
	// At is when it was committed.
	At time.Time
	// Old and New are the object before and after; nil if it does not exist then.
	Old, New client.Object
}

// Gone reports whether the object ceased to exist.
func (e *Entry) Gone() bool { return e.New == nil }

// journal holds every write.
type journal struct {
	log    []Entry
	byKind map[Kind][]int
}

// Log returns every write, oldest first. It belongs to the store.
func (j *journal) Log() []Entry { return j.log }

// History yields the writes of a kind, oldest first.
func (j *journal) History(kind Kind) iter.Seq[*Entry] { return j.from(kind, 0) }

// Since yields the writes of a kind after a resource version, oldest first.
func (j *journal) Since(kind Kind, version int64) iter.Seq[*Entry] {
	positions := j.byKind[kind]
	n, _ := slices.BinarySearchFunc(positions, version+1, func(position int, version int64) int {
		return cmp.Compare(j.log[position].Version, version)
	})
	return j.from(kind, n)
}

// from yields the writes of a kind from the n-th on.
func (j *journal) from(kind Kind, n int) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for ; ; n++ {
			if e := j.entry(kind, n); e == nil || !yield(e) {
				return
			}
		}
	}
}

// entry returns the n-th write of a kind; nil if there is none.
func (j *journal) entry(kind Kind, n int) *Entry {
	positions := j.byKind[kind]
	if n >= len(positions) {
		return nil
	}
	return &j.log[positions[n]]
}

// at returns the state of a kind at a resource version, and the position in its log of the first newer entry.
func (j *journal) at(kind Kind, version int64) (state map[Key]client.Object, next int) {
	state = make(map[Key]client.Object)
	for _, position := range j.byKind[kind] {
		e := &j.log[position]
		if e.Version > version {
			break
		}
		next++
		if e.Gone() {
			delete(state, e.Key)
			continue
		}
		state[e.Key] = e.New
	}
	return state, next
}

// StateAt returns every object as it was at a resource version, in a fixed order.
func (j *journal) StateAt(version int64) []client.Object {
	var objs []client.Object
	for _, kind := range Kinds() {
		state, _ := j.at(kind, version)
		for _, key := range sortedKeys(state, nil) {
			objs = append(objs, state[key])
		}
	}
	return objs
}
