// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/testing/sim/apiserver"
)

// What is called too much. All are well above what a correct controller needs, and far below what one does that writes
// as fast as it can.
const (
	maxInARow     = 6                // writes of one manager to one pod, claim or revision, and nobody else's between them
	maxStatuses   = 10               // writes of the status in a second, by one life of a manager
	maxFailures   = 40               // failures of the same write in failureWindow, by one life of a manager
	failureWindow = 10 * time.Minute //
	maxMessage    = 4 << 10          // bytes of a message in a condition
	maxNotes      = 16 << 10         // bytes of the annotations of a pod
)

// bounds remembers what the rules about too many writes need.
type bounds struct {
	inARow   map[apiserver.Key]streak
	statuses map[string][]time.Time
	failures map[string][]time.Time
}

// streak is how often an object was written by the manager that wrote it last, while it wanted the same.
type streak struct {
	actor      string
	generation int64 // of the set that the manager knows
	writes     int
}

func newBounds() *bounds {
	return &bounds{inARow: make(map[apiserver.Key]streak), statuses: make(map[string][]time.Time), failures: make(map[string][]time.Time)}
}

// restart forgets what a manager did in its last life: the next one cannot know.
func (b *bounds) restart(manager string) {
	delete(b.statuses, manager)
	clear(b.failures)
}

// see takes note of a write of anybody. If it is a manager's, generation is that of the set that it knows.
func (b *bounds) see(e *apiserver.Entry, byManager bool, generation int64) {
	switch {
	case byManager && e.Key.Kind == apiserver.RollSets:
		b.statuses[e.Actor] = within(append(b.statuses[e.Actor], e.At), time.Second)
	case byManager:
		if e.Key.Kind == apiserver.Revisions { // two managers that want different ones number each the newest in turns
			maps.DeleteFunc(b.inARow, func(key apiserver.Key, s streak) bool { return key.Kind == apiserver.Revisions && s.actor != e.Actor })
		}
		last := b.inARow[e.Key]
		// Two managers that do not know the same may undo each other's work, and one that learns of edits late its own.
		if last.actor != e.Actor || last.generation != generation {
			last = streak{actor: e.Actor, generation: generation}
		}
		last.writes++
		b.inARow[e.Key] = last
	case e.Key.Kind == apiserver.RollSets:
		clear(b.inARow) // something else is wanted now
		clear(b.failures)
	case e.Actor == User && e.Key.Kind == apiserver.Pods && e.Subresource == "status":
		// What a gate says of one pod decides what the guard lets happen to the others.
		maps.DeleteFunc(b.inARow, func(key apiserver.Key, _ streak) bool { return key.Kind == apiserver.Pods })
	default:
		delete(b.inARow, e.Key)
	}
}

// within drops the times that are a window or longer before the last.
func within(times []time.Time, window time.Duration) []time.Time {
	last := times[len(times)-1]
	return slices.DeleteFunc(times, func(t time.Time) bool { return last.Sub(t) >= window })
}

// try takes note of the outcome of a write that a manager tried; it says what is wrong with there being so many.
func (b *bounds) try(w apiserver.Write, err error, now time.Time) string {
	what := w.Actor + " " + w.String()
	if err == nil {
		delete(b.failures, what)
		return ""
	}
	b.failures[what] = within(append(b.failures[what], now), failureWindow)
	if n := len(b.failures[what]); n > maxFailures {
		return fmt.Sprintf("I10 hot loop: %s failed %d times in %s: %v", what, n, failureWindow, err)
	}
	return ""
}

// writesLittle is I10 and I11 for what was written: no object is written again and again by a manager, and the status of
// a set that changes all the time only so often.
func writesLittle(v *verdict) string {
	switch b := v.checker.bounds; {
	case b.inARow[v.Key].writes > maxInARow:
		return fmt.Sprintf("the object was written %d times in a row, and nothing else happened to it", b.inARow[v.Key].writes)
	case len(b.statuses[v.Actor]) > maxStatuses:
		return fmt.Sprintf("the status was written %d times in a second", len(b.statuses[v.Actor]))
	default:
		return ""
	}
}

// staysSmall is I15: nothing that a manager writes grows without bound.
func staysSmall(v *verdict) string {
	switch o := v.New.(type) {
	case *v1alpha1.RollSet:
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

// guardsMoves is the guard: while as many pods at the update revision are unavailable as may be, no other pod is moved
// to it, by a delete or in place. It is judged where every pod is wanted at that revision and none is too many.
func guardsMoves(v *verdict) string {
	if v.set == nil || v.set.Spec.UpdateStrategy.Type != v1alpha1.RollingUpdateStrategy || v.world.Rejected(v.set) {
		return ""
	}
	l, live := v.world.Limits(v.set), v.count(IsLive)
	update := v.world.VersionOf(&v.set.Spec.Template)
	if l.Partition > 0 || !v.movesTo(update, live <= l.Replicas) {
		return ""
	}
	broken := v.count(func(pod *corev1.Pod) bool {
		return apiserver.KeyOf(pod) != v.Key && IsLive(pod) && v.world.Version(pod) == update && !v.isAvailable(pod) &&
			!v.outside(pod) && !v.specified(pod) && !v.checker.creates.unhoped[apiserver.KeyOf(pod)] && !v.checker.silent[apiserver.KeyOf(pod)]
	})
	if limit := max(1, l.maxUnavailable+min(l.maxSurge, max(v.count(isSurge), live-l.Replicas))); broken >= limit && !v.passesGuard(update, limit) {
		return fmt.Sprintf("%d pods at %s are unavailable already, at most %d may be", broken, update, limit)
	}
	return ""
}

// passesGuard says whether a broken pod may be moved though the guard holds: no pod is available, and as many as the guard
// lets be have not been ready at the version for a minute.
func (v *verdict) passesGuard(version string, limit int) bool {
	pod := v.pod()
	stuck := v.count(func(pod *corev1.Pod) bool {
		return IsLive(pod) && v.world.Version(pod) == version && !IsReady(pod) && v.now.Sub(podstate.UnreadySince(pod)) >= time.Minute
	})
	return pod != nil && !IsReady(pod) && v.count(v.isAvailable) == 0 && stuck >= limit
}

// movesSilently says whether the write moves a pod in place and leaves its images.
func (v *verdict) movesSilently() bool {
	u, ok := v.update()
	return ok && u.sameImages() && v.world.Version(u.before) != v.world.Version(u.after)
}

// movesTo says whether the write takes a pod to a version: it deletes one that is at another, and that neither anybody
// named nor is too many, or changes what runs in it.
func (v *verdict) movesTo(version string, deleteMoves bool) bool {
	if u, ok := v.update(); ok {
		return !u.sameImages() && v.world.Version(u.before) != version && v.world.Version(u.after) == version
	}
	pod := v.pod()
	return deleteMoves && v.deletesPod() && pod != nil && IsLive(pod) && v.world.Version(pod) != version && !v.specified(pod) && !v.outside(pod)
}
