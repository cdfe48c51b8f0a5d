// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
)

// The verbs of attempts that are no actions of a plan.
const (
	WritingStatus    attempt.Verb = "write status"
	CreatingRevision attempt.Verb = "create revision"
	PatchingRevision attempt.Verb = "patch revision"
	DeletingRevision attempt.Verb = "delete revision"
	AdoptingRevision attempt.Verb = "adopt revision"
	// AskingLive reads objects that the cache may not show yet: pods, or the newest version of the set.
	AskingLive attempt.Verb = "read past the cache"
	// Replacing replaces pods that ended soon after they started.
	Replacing attempt.Verb = "replace pods that keep ending"
)

// budgetCooldown is the minimum time between two identical writes to a disruption budget, so that two clients that change it in
// turn do not cause each other work.
const budgetCooldown = 10 * time.Second

// gateCooldown is the minimum time between two identical writes to one gate, so that a client that changes it repeatedly does
// not cause as many writes.
const gateCooldown = time.Second

// Writes paces the attempts of one set during one reconcile, on the versions that the cache shows.
type Writes struct {
	table   *Table
	objects *snapshot.Objects
	// byUID has the objects by their UIDs. It is filled when it is first needed.
	byUID map[string]metav1.Object
}

// For returns the pace of the writes to objects; the table remembers it from one reconcile to the next.
func (t *Table) For(objects *snapshot.Objects) *Writes { return &Writes{table: t, objects: objects} }

// Wait returns how long an attempt has to wait.
func (w *Writes) Wait(k attempt.Key) time.Duration {
	_, _, wait := w.last(k)
	return wait
}

// Failure returns the last failure of an attempt; false if there is none that counts.
func (w *Writes) Failure(k attempt.Key) (Failure, bool) {
	f, counts, _ := w.last(k)
	return f, counts
}

// last returns the last failure of an attempt, whether it counts, and how long the next attempt has to wait.
func (w *Writes) last(k attempt.Key) (f Failure, counts bool, wait time.Duration) {
	if !w.table.Has(k) {
		return Failure{}, false, 0
	}
	version, seen := w.version(k, w.table.Altered(k)), ""
	if object := w.object(k); object != nil {
		seen = object.GetResourceVersion()
	}
	f, counts = w.table.Failure(k, version)
	return f, counts, w.table.Wait(k, version, seen, w.objects.Now)
}

// Note notes a failure of an attempt on the version that the cache shows. An attempt that was altered stays marked as altered until it
// succeeds: a conflict in between does not show that the policy is gone.
func (w *Writes) Note(k attempt.Key, f Failure) {
	f.Altered = f.Altered || w.table.Altered(k)
	f.Version = w.version(k, f.Altered)
	w.table.Failed(k, f, w.objects.Now)
}

// Failed notes an attempt that the API server did not carry out.
func (w *Writes) Failed(k attempt.Key, err error) { w.failed(attempt.Result{Key: k, Err: err}) }

func (w *Writes) failed(a attempt.Result) {
	conflict := apierrors.IsConflict(a.Err)
	w.Note(a.Key, Failure{
		Message: a.Err.Error(), Refused: conflict || attempt.Refused(a.Err), ByRule: attempt.ByRule(a.Err), Conflict: conflict,
		Unsettled: a.Key.Object == "" || attempt.MayHaveHappened(a.Err), Altered: attempt.IsAltered(a.Err), OfClaim: a.OfClaim,
	})
}

// Overtaken notes an attempt on an object that has changed since the cache showed it.
func (w *Writes) Overtaken(k attempt.Key, seen string, err error) {
	w.Note(k, Failure{Seen: seen, Message: err.Error()})
}

// Succeeded forgets the failures of an attempt.
func (w *Writes) Succeeded(k attempt.Key) { w.table.Succeeded(k) }

// Attempted records the result of a write of the plan.
func (w *Writes) Attempted(a attempt.Result, namespaceGone bool) {
	if a.Err == nil {
		w.Succeeded(attempt.Any(a.Key.Verb))
	}
	switch {
	case a.Err == nil && cooldown(a.Key.Verb) > 0:
		w.table.Rest(a.Key, Failure{Version: w.version(a.Key, false)}, w.objects.Now, cooldown(a.Key.Verb))
	case a.Err == nil:
		w.Succeeded(a.Key)
	case a.Blocked:
		w.Note(a.Key, Failure{Refused: true})
	case a.Overtaken:
		w.Overtaken(a.Key, a.Seen, a.Err)
	case a.Key.Verb == attempt.Creating && namespaceGone: // the set is deleted with the namespace
		w.table.Rest(a.Key, Failure{Version: w.version(a.Key, false), Message: a.Err.Error(), Refused: true}, w.objects.Now, Longest)
	default:
		w.failed(a)
	}
}

// cooldown returns how long a write waits after a success; zero if it does not.
func cooldown(verb attempt.Verb) time.Duration {
	switch {
	case verb == attempt.Opening || verb == attempt.Closing:
		return gateCooldown
	case attempt.OfBudget(verb):
		return budgetCooldown
	default:
		return 0
	}
}

// EndedSoon notes that a pod was deleted that ended soon after it started, and that its successor is of a revision.
func (w *Writes) EndedSoon(revision string) {
	w.table.Failed(attempt.Key{Verb: Replacing}, Failure{Version: revision, Refused: true}, w.objects.Now)
}

// ReplaceWait returns how long pods that have ended wait for their successors of a revision.
func (w *Writes) ReplaceWait(revision string) time.Duration {
	return w.table.Wait(attempt.Key{Verb: Replacing}, revision, "", w.objects.Now)
}

// Refusals returns the refused writes that may still be wanted, in the form that planners read. It drops those of deleted objects.
func (w *Writes) Refusals() map[attempt.Key]snapshot.Refusal {
	gone := func(k attempt.Key) bool { return k.Object != "" && ofObject(k.Verb) && w.object(k) == nil }
	w.table.Forget(gone, w.objects.Now)
	refusals := map[attempt.Key]snapshot.Refusal{}
	for _, k := range w.table.Keys() {
		if !ofPlan(k.Verb) {
			continue
		}
		if f, counts, wait := w.last(k); counts && (wait > 0 || f.Message != "") {
			refusals[k] = snapshot.Refusal{
				Message: f.Message, Overtaken: f.Overtaken, Unsettled: w.table.Doubt(k, w.objects.Now) > 0,
				Definite: f.Refused && !f.Overtaken, Altered: f.Altered, ByRule: f.ByRule, OfClaim: f.OfClaim, Retry: wait,
			}
		}
	}
	return refusals
}

// Retry returns when to try a failed write again, or when it is known what came of a delete; zero if none failed. No event shows either.
func (w *Writes) Retry() (next time.Duration) {
	for _, k := range w.table.Keys() {
		f, _, wait := w.last(k)
		if cooldown(k.Verb) > 0 && f.Message == "" {
			continue // it succeeded, and may not be wanted again
		}
		next = action.Sooner(next, wait)
		if k.Verb == attempt.Deleting {
			next = action.Sooner(next, w.table.Doubt(k, w.objects.Now))
		}
	}
	return next
}

// object returns the object that a key names; nil if the cache shows none.
func (w *Writes) object(k attempt.Key) metav1.Object {
	if k.Object == "" {
		return nil
	}
	if o := w.objects; w.byUID == nil {
		w.byUID = make(map[string]metav1.Object, len(o.Pods)+len(o.Orphans)+len(o.Claims)+len(o.Revisions))
		for _, pod := range slices.Concat(o.Pods, o.Orphans) {
			w.byUID[string(pod.UID)] = pod
		}
		for i := range o.Claims {
			w.byUID[string(o.Claims[i].UID)] = &o.Claims[i]
		}
		for _, revision := range o.Revisions {
			w.byUID[string(revision.UID)] = revision
		}
		for _, budget := range o.Budgets.All {
			w.byUID[string(budget.UID)] = budget
		}
	}
	return w.byUID[k.Object]
}

// version identifies the content of an attempt: the spec and the object. Of a pod it includes the labels, because policies select pods
// by them, but no other field that changes often, and no label of a lifecycle hook. After an attempt that was altered, the version
// includes the spec only, because that attempt may have changed the object.
func (w *Writes) version(k attempt.Key, altered bool) string {
	generation := strconv.FormatInt(w.objects.Set.Generation, 10)
	at := func(o metav1.Object) string { return generation + " " + strconv.FormatInt(o.GetGeneration(), 10) }
	switch object := w.object(k); {
	case altered:
		return generation
	case k == attempt.AnyCreate(), k == attempt.Any(attempt.Resizing):
		return generation + w.running()
	case k.Verb == WritingStatus:
		return w.objects.Set.ResourceVersion
	case object == nil, attempt.OfBudget(k.Verb): // writes of other clients to a budget do not matter
		return generation
	case k.Verb == PatchingRevision: // once it is written, it is not wanted again
		return object.GetResourceVersion()
	case w.objects.Set.Spec.Lifecycle != nil:
		return at(object)
	default:
		return at(object) + " " + labels.Set(object.GetLabels()).String()
	}
}

// running changes when a pod of the set ends or is deleted, because a quota may then admit another pod.
func (w *Writes) running() string {
	var sum uint64
	for _, pod := range w.objects.Pods {
		if !podstate.Finished(pod) {
			h := fnv.New64a()
			_, _ = h.Write([]byte(pod.UID))
			sum ^= h.Sum64()
		}
	}
	return " " + strconv.FormatUint(sum, 36)
}

// ofPlan reports whether planners read the refusals of a verb.
func ofPlan(verb attempt.Verb) bool {
	return !slices.Contains([]attempt.Verb{
		WritingStatus, CreatingRevision, PatchingRevision, DeletingRevision, AdoptingRevision, AskingLive, Replacing, attempt.Preflighting,
	}, verb)
}

// ofObject reports whether a verb writes to an object that exists.
func ofObject(verb attempt.Verb) bool {
	return !slices.Contains([]attempt.Verb{
		WritingStatus, CreatingRevision, AdoptingRevision, AskingLive, Replacing, attempt.Preflighting, attempt.Creating, attempt.MakingClaims,
		attempt.CreatingBudget,
	}, verb)
}
