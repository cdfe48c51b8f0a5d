// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff paces attempts that fail, each separately from all others.
//
// The rule: an attempt is a verb and an object. The first one is free. Then the wait doubles from one failure to the next,
// up to a bound. It starts again after a success, when the attempted content changes, and after a long time without an
// attempt. A refused write may be refused without end. An API server that fails recovers soon, so the bound for it is lower.
// An attempt that lost against another writer is repeated a few times on what that one wrote. After that a conflict is a
// refusal like any other.
package backoff

import (
	"maps"
	"time"

	"rollset.dev/rollset/internal/model/attempt"
)

// The shortest wait between two attempts, and the longest ones.
const (
	Shortest = time.Second
	// ShortestAltered is the shortest wait after a write that was accepted and did not do what it says: a policy that rewrites
	// objects stays for long.
	ShortestAltered = 10 * time.Second
	// LongestTrouble is the longest wait after a failure that says nothing about the attempt.
	LongestTrouble = 30 * time.Second
	Longest        = 5 * time.Minute
)

// patience is how many times in a row an attempt may be overtaken and be made again as soon as the object has changed.
const patience = 3

// Failure is a failed attempt.
type Failure struct {
	// Version is what was attempted. Another version waits for nothing.
	Version string
	// Seen is the resource version on which the attempt was made, if it failed because the object has another.
	Seen string
	// Conflict is true if the API server spoke of a conflict though the object is as it was seen.
	Conflict bool
	// Unsettled is true if it is not known what came of the attempt.
	Unsettled bool
	// Message is what the API server said.
	Message string
	// Refused is true if it understood the attempt and will not have it as things are.
	Refused bool
	// ByRule is true if a quota or a policy refused it, which would refuse another object of the same content too.
	ByRule bool
	// Altered is true if the API server accepted the write, and it did not do what it says.
	Altered bool
	// Longest bounds the wait in place of the bounds that are usual; zero if they will do.
	Longest time.Duration
	// Overtaken is true if another writer seems to have been faster. That is not a refusal yet.
	Overtaken bool
}

// Table holds the attempts that failed. The zero Table is ready to use.
type Table struct {
	entries map[attempt.Key]*entry
}

type entry struct {
	Failure

	last  time.Time
	delay time.Duration
	// fails is how many times in a row the attempt has failed.
	fails int
}

// Failed notes a failure.
func (t *Table) Failed(k attempt.Key, f Failure, now time.Time) {
	e := t.entry(k)
	if e.Version != f.Version || now.Sub(e.last) > 2*Longest {
		e.delay, e.fails = 0, 0
	}
	longest := LongestTrouble
	if f.Refused || f.Seen != "" {
		longest = Longest
	}
	if f.Longest > 0 {
		longest = f.Longest
	}
	f.Overtaken = (f.Conflict || f.Seen != "") && e.fails < patience
	e.Failure, e.last = f, now
	shortest := Shortest
	if f.Altered {
		shortest = ShortestAltered
	}
	e.delay = min(max(shortest, 2*e.delay), longest)
	e.fails++
}

// Rest lets an attempt, of whatever outcome, not be made again before a while has passed.
func (t *Table) Rest(k attempt.Key, f Failure, now time.Time, d time.Duration) {
	*t.entry(k) = entry{Failure: f, last: now, delay: d}
}

func (t *Table) entry(k attempt.Key) *entry {
	if t.entries == nil {
		t.entries = map[attempt.Key]*entry{}
	}
	if t.entries[k] == nil {
		t.entries[k] = &entry{}
	}
	return t.entries[k]
}

// Succeeded forgets the failures of an attempt.
func (t *Table) Succeeded(k attempt.Key) { delete(t.entries, k) }

// Wait returns how long the next attempt has to wait, if it is made at a version, on an object seen at a resource version.
func (t *Table) Wait(k attempt.Key, version, seen string, now time.Time) time.Duration {
	e, ok := t.entries[k]
	if !ok || e.Version != version || e.Overtaken && e.Seen != "" && e.Seen != seen {
		return 0
	}
	return min(max(0, e.last.Add(e.delay).Sub(now)), e.delay) // a clock that jumps back adds nothing
}

// Altered reports whether the last attempt was accepted and did not do what it says.
func (t *Table) Altered(k attempt.Key) bool {
	return t.entries[k] != nil && t.entries[k].Altered
}

// Has reports whether anything is known of an attempt.
func (t *Table) Has(k attempt.Key) bool { return t.entries[k] != nil }

// Failure returns the last failure of an attempt at a version; false if there is none.
func (t *Table) Failure(k attempt.Key, version string) (Failure, bool) {
	if e, ok := t.entries[k]; ok && e.Version == version {
		return e.Failure, true
	}
	return Failure{}, false
}

// Keys returns the attempts that failed.
func (t *Table) Keys() []attempt.Key {
	keys := make([]attempt.Key, 0, len(t.entries))
	for k := range t.entries {
		keys = append(keys, k)
	}
	return keys
}

// Forget drops what is too old to count, and what concerns objects that are gone.
func (t *Table) Forget(gone func(attempt.Key) bool, now time.Time) {
	maps.DeleteFunc(t.entries, func(k attempt.Key, e *entry) bool {
		rested := e.fails == 0 && e.Message == "" && now.Sub(e.last) >= e.delay
		return rested || now.Sub(e.last) > 2*Longest || gone(k)
	})
}
