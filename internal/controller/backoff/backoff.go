// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff paces attempts that fail, each separately from all others.
//
// The rule: an attempt is a verb and an object. The first one is free. Then the wait doubles from one failure to the next,
// up to a bound. The wait starts again from the shortest one after a success, when the content of the attempt changes, and after a long
// time without an attempt. The bound is lower for failures of the API server, which end soon, than for refusals, which may last. An
// attempt that conflicts with another writer is repeated a few times on the new version. After that, a conflict counts as a refusal.
package backoff

import (
	"maps"
	"time"

	"rollset.dev/rollset/internal/model/attempt"
)

// The shortest wait between two attempts, and the longest ones.
const (
	Shortest = time.Second
	// ShortestAltered is the shortest wait after a write that the API server accepted and altered. It is longer, because a policy
	// that rewrites objects lasts.
	ShortestAltered = 10 * time.Second
	// LongestTrouble is the longest wait after a failure that is not about the attempt.
	LongestTrouble = 30 * time.Second
	Longest        = 5 * time.Minute
	// Forgotten is when a failure no longer says anything about the object. Until then, others are tried before it.
	Forgotten = 30 * time.Minute
	// Settled is how long it remains unknown what came of an attempt that was not answered. API servers end a request within a minute
	// by default, and the cache shows it then.
	Settled = time.Minute
)

// patience is how many conflicts in a row do not delay the next attempt, once the object has changed.
const patience = 3

// Failure is a failed attempt.
type Failure struct {
	// Version identifies the content of the attempt. An attempt with another version does not wait.
	Version string
	// Seen is the resource version on which the attempt was made, if it failed because the object has another.
	Seen string
	// Conflict is true if the API server reported a conflict although the object has not changed.
	Conflict bool
	// Unsettled is true if the outcome of the attempt is unknown.
	Unsettled bool
	// Message is the API server's message.
	Message string
	// Refused is true if the API server understood the attempt and refuses it.
	Refused bool
	// ByRule is true if a quota or a policy refused it. They would refuse another object with the same content too.
	ByRule bool
	// Altered is true if the API server accepted the write and stored something else.
	Altered bool
	// OfClaim is true if a claim of the pod failed, so that the pod was not written.
	OfClaim bool
	// Longest replaces the usual bound of the wait; zero keeps it.
	Longest time.Duration
	// Overtaken is true if another writer seems to have changed the object first. That is not a refusal yet.
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

// Rest keeps an attempt from being made again for some time, whatever its result is.
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

// Altered reports whether the API server altered what the last attempt wrote.
func (t *Table) Altered(k attempt.Key) bool {
	return t.entries[k] != nil && t.entries[k].Altered
}

// Doubt returns for how long it remains unknown what came of the last attempt; zero if it is known.
func (t *Table) Doubt(k attempt.Key, now time.Time) time.Duration {
	e, ok := t.entries[k]
	if !ok || !e.Unsettled && e.Seen == "" {
		return 0
	}
	return min(max(0, e.last.Add(Settled).Sub(now)), Settled) // a clock that jumps back adds nothing
}

// Has reports whether the table has an entry for an attempt.
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

// Forget drops entries that are too old to count, and those of deleted objects.
func (t *Table) Forget(gone func(attempt.Key) bool, now time.Time) {
	maps.DeleteFunc(t.entries, func(k attempt.Key, e *entry) bool {
		rested := e.fails == 0 && e.Message == "" && now.Sub(e.last) >= e.delay
		return rested || now.Sub(e.last) > Forgotten || gone(k)
	})
}
