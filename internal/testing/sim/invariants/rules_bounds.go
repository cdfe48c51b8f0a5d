// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// The bounds of what a manager may write. All are well above what a correct controller needs, and far below the writes
// of a hot loop.
const (
	maxInARow     = 6                // writes of one manager to one pod, claim or revision without a write of another client between them
	maxWasted     = 40               // pods that a manager created and deleted again, with no write of another client to them or to the set
	maxStatuses   = 10               // writes of the status in a second, by one life of a manager
	maxFailures   = 60               // failures of the same write in failureWindow, by one life of a manager: of two kinds of patches of one pod
	failureWindow = 10 * time.Minute //
	rewrittenRest = 10 * time.Second // for maxRewritten patches that admission changes in the same way, by one life of a manager
	maxRewritten  = 1                // the answer tells
	maxMisfits    = 12               // pods in a minute that admission makes none of the set's, by one life of a manager
	maxMessage    = 4 << 10          // bytes of a message in a condition
	maxNotes      = 16 << 10         // bytes of the annotations of a pod
)

// bounds records what the rules about too many writes need.
type bounds struct {
	inARow   map[apiserver.Key]streak
	statuses map[string][]time.Time
	failures map[string][]time.Time
	// rewritten is when patches were last changed by admission, and misfits when pods were made that are none of the set's.
	rewritten map[string][]time.Time
	misfits   []time.Time
	wasted    int // pods that managers created and deleted before anything happened to them
}

// streak counts the writes in a row of one manager to an object during one generation of the set.
type streak struct {
	actor      string
	generation int64 // of the set that the manager knows
	writes     int
	lives      int  // objects of the same name that were deleted
	created    bool // by the first of the writes
}

func newBounds() *bounds {
	return &bounds{inARow: make(map[apiserver.Key]streak), statuses: make(map[string][]time.Time), failures: make(map[string][]time.Time), rewritten: make(map[string][]time.Time)}
}

// restart forgets what a manager did before its restart, because it cannot know. It does not know either which deletions were
// refused, so it may prepare these pods again.
func (b *bounds) restart(manager string) {
	delete(b.statuses, manager)
	maps.DeleteFunc(b.inARow, func(key apiserver.Key, _ streak) bool {
		return len(b.failures[manager+" "+apiserver.Write{Verb: apiserver.Delete, Key: key}.String()]) > 0
	})
	clear(b.failures)
	b.forgetRewritten()
}

func (b *bounds) forgetRewritten() {
	clear(b.rewritten)
	b.misfits = nil
}

// rewrite records a write that admission changed. It returns what is wrong if the same was tried a moment ago.
func (b *bounds) rewrite(w apiserver.Write, generation int64, now time.Time) string {
	if w.Verb == apiserver.Patch {
		what := rewrittenBy(w, generation)
		if w.Key.Kind == apiserver.RollSets { // a status that differs from the last one may be that of before
			maps.DeleteFunc(b.rewritten, func(other string, _ []time.Time) bool {
				return other != what && strings.HasPrefix(other, w.Actor+" ") && strings.Contains(other, " "+string(apiserver.RollSets)+" ")
			})
		}
		b.rewritten[what] = within(append(b.rewritten[what], now), rewrittenRest)
		if n := len(b.rewritten[what]); n > maxRewritten {
			return fmt.Sprintf("I10 hot loop: %s was changed by admission %d times in %s", what, n, rewrittenRest)
		}
	}
	return ""
}

// rewrittenBy returns what tells a patch that admission changes from others. Generation is that of the set that the manager knows.
func rewrittenBy(w apiserver.Write, generation int64) string {
	return fmt.Sprintf("%s %s %s for generation %d", w.Actor, w, patchedKeys(w.Body), generation)
}

// lost forgets the last time that admission changed a write: the manager got no answer, and does not know.
func (b *bounds) lost(w apiserver.Write, generation int64) {
	what := rewrittenBy(w, generation)
	b.rewritten[what] = b.rewritten[what][:max(0, len(b.rewritten[what])-1)]
}

// misfit records a pod that admission made none of the set's. It returns what is wrong if there were too many.
func (b *bounds) misfit(now time.Time) string {
	if b.misfits = within(append(b.misfits, now), time.Minute); len(b.misfits) > maxMisfits {
		return fmt.Sprintf("I10 hot loop: %d pods in a minute that are none of the set's", len(b.misfits))
	}
	return ""
}

// patchedKeys returns the object that a patch is for, what it changes of metadata, and the status that it writes.
func patchedKeys(body []byte) string {
	var says struct {
		Status   json.RawMessage
		Metadata struct {
			UID                 string
			Labels, Annotations map[string]any
			OwnerReferences     []any
		}
	}
	if json.Unmarshal(body, &says) != nil {
		return ""
	}
	return fmt.Sprint(says.Metadata.UID, " ", slices.Sorted(maps.Keys(says.Metadata.Labels)), slices.Sorted(maps.Keys(says.Metadata.Annotations)), len(says.Metadata.OwnerReferences), string(says.Status))
}

// see records a write of any client. For a manager, generation is the generation of the set that it knows.
func (b *bounds) see(e *apiserver.Entry, byManager bool, generation int64) {
	if e.Gone() {
		defer b.forget(e.Key)
	}
	switch {
	case byManager && e.Key.Kind == apiserver.RollSets:
		b.statuses[e.Actor] = within(append(b.statuses[e.Actor], e.At), time.Second)
		maps.DeleteFunc(b.rewritten, func(what string, _ []time.Time) bool { // what another manager wants now differs from another status
			return strings.Contains(what, " "+string(apiserver.RollSets)+" ") && !strings.HasPrefix(what, e.Actor+" ")
		})
	case byManager:
		if e.Key.Kind == apiserver.Revisions { // two managers that want different revisions take turns to number theirs as the newest
			maps.DeleteFunc(b.inARow, func(key apiserver.Key, s streak) bool { return key.Kind == apiserver.Revisions && s.actor != e.Actor })
		}
		last := b.inARow[e.Key]
		// Two managers with different caches may undo each other's work, and a manager with a late cache its own.
		if last.actor != e.Actor || last.generation != generation {
			last = streak{actor: e.Actor, generation: generation, created: e.Verb == apiserver.Create}
		}
		if last.created && e.Verb == apiserver.Delete && e.Key.Kind == apiserver.Pods {
			b.wasted++
		}
		last.writes++
		b.inARow[e.Key] = last
	case e.Key.Kind == apiserver.RollSets:
		clear(b.inARow) // the set has changed
		clear(b.failures)
		b.forgetRewritten()
		b.wasted = 0
	case e.Actor == User && e.Key.Kind == apiserver.Pods && e.Subresource == "status":
		// The gate of one pod decides what the guard allows for the others.
		maps.DeleteFunc(b.inARow, func(key apiserver.Key, _ streak) bool { return key.Kind == apiserver.Pods })
	default:
		delete(b.inARow, e.Key)
	}
}

// forget drops the writes to an object that is gone, because the next one of its name is another object. It counts how many went in a row.
func (b *bounds) forget(key apiserver.Key) {
	maps.DeleteFunc(b.rewritten, func(what string, _ []time.Time) bool { return strings.Contains(what, " "+key.String()+" ") })
	last := b.inARow[key]
	last.lives++
	last.writes = last.lives
	b.inARow[key] = last
}

// try records the outcome of a write that a manager tried. It returns what is wrong if there were too many.
func (b *bounds) try(w apiserver.Write, err error, now time.Time) string {
	what := w.Actor + " " + w.String()
	if err == nil {
		delete(b.failures, what)
		return ""
	}
	b.failures[what] = within(append(b.failures[what], now), failureWindow)
	limit := maxFailures
	if w.DryRun { // which of the two revisions of the set it is about is not known
		limit *= 2
	}
	if n := len(b.failures[what]); n > limit {
		return fmt.Sprintf("I10 hot loop: %s failed %d times in %s: %v", what, n, failureWindow, err)
	}
	return ""
}

// writesLittle checks I10 and I11: a manager does not write the same object over and over, and writes the status of a
// set at a bounded rate.
func writesLittle(v *verdict) string {
	switch b := v.checker.bounds; {
	case b.inARow[v.Key].writes > maxInARow:
		return fmt.Sprintf("the object was written %d times in a row, and nothing else happened to it", b.inARow[v.Key].writes)
	case b.wasted > maxWasted:
		return fmt.Sprintf("%d pods were created and deleted again, and nothing else happened to them", b.wasted)
	case len(b.statuses[v.Actor]) > maxStatuses:
		return fmt.Sprintf("the status was written %d times in a second", len(b.statuses[v.Actor]))
	default:
		return ""
	}
}

// staysSmall checks I15: nothing that a manager writes grows without bound.
func staysSmall(v *verdict) string {
	switch o := v.New.(type) {
	case *v1beta1.RollSet:
		for i := range o.Status.Conditions {
			if n := len(o.Status.Conditions[i].Message); n > maxMessage {
				return fmt.Sprintf("condition %s has a message of %d bytes", o.Status.Conditions[i].Type, n)
			}
		}
	case *corev1.Pod:
		if n := noteBytes(o); n > maxNotes && n > noteBytes(v.Old) {
			return fmt.Sprintf("the pod has %d bytes of annotations now", n)
		}
	}
	return ""
}

func noteBytes(obj client.Object) int {
	if obj == nil {
		return 0
	}
	n := 0
	for key, value := range obj.GetAnnotations() {
		n += len(key) + len(value)
	}
	return n
}
