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
	// Doubting asks the API server for what the cache does not show: pods, or that the set is gone.
	Doubting attempt.Verb = "ask for what the cache does not show"
	// Replacing replaces pods that ended soon after they started.
	Replacing attempt.Verb = "replace pods that keep ending"
)

// budgetCooldown is the minimum time between two identical writes to a disruption budget, so that two clients that keep changing
// it do not make one another busy.
const budgetCooldown = 10 * time.Second

// gateCooldown is the minimum time between two identical writes to one gate, so that a client that keeps turning it cannot
// make us write at every turn.
const gateCooldown = time.Second

// Writes paces the attempts of one set during one reconcile. It knows the versions of what the cache shows.
type Writes struct {
	table   *Table
	objects *snapshot.Objects
	// byUID are the objects by their UIDs, once they are asked for.
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

// Note notes a failure of an attempt on what the cache shows. An attempt that was altered once stays so until it succeeds: a conflict
// in between tells nothing about the policy.
func (w *Writes) Note(k attempt.Key, f Failure) {
	f.Altered = f.Altered || w.table.Altered(k)
	f.Version = w.version(k, f.Altered)
	w.table.Failed(k, f, w.objects.Now)
}

// Failed notes an attempt that the API server did not carry out.
func (w *Writes) Failed(k attempt.Key, err error) {
	conflict := apierrors.IsConflict(err)
	w.Note(k, Failure{
		Message: err.Error(), Refused: conflict || attempt.Refused(err), ByRule: attempt.ByRule(err), Conflict: conflict,
		Unsettled: k.Object == "" || attempt.MayHaveHappened(err), Altered: attempt.IsAltered(err),
	})
}

// Overtaken notes an attempt on an object that is not as the cache shows it.
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
	case a.Key.Verb == attempt.Creating && namespaceGone: // nothing can be created in the namespace, and the set is deleted with it
		w.table.Rest(a.Key, Failure{Version: w.version(a.Key, false), Message: a.Err.Error(), Refused: true}, w.objects.Now, Longest)
	default:
		w.Failed(a.Key, a.Err)
	}
}

// cooldown is how long a write rests after a success; zero if it does not.
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

// Refusals are the writes that were refused a while ago and may be wanted still, as planners see them. What concerns objects
// that are gone is forgotten.
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
				Message: f.Message, Overtaken: f.Overtaken, Unsettled: f.Unsettled || f.Seen != "",
				Definite: f.Refused && !f.Overtaken, Altered: f.Altered, ByRule: f.ByRule, Retry: wait,
			}
		}
	}
	return refusals
}

// Retry is when to try again what failed; zero if nothing did. No event tells that the API server would accept it now.
func (w *Writes) Retry() (next time.Duration) {
	for _, k := range w.table.Keys() {
		f, _, wait := w.last(k)
		if cooldown(k.Verb) > 0 && f.Message == "" {
			continue // it only rests, and may not be wanted again
		}
		next = action.Sooner(next, wait)
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

// version is what an attempt is about: the spec and the object. What else is written on a pod changes all the time and makes
// no difference, but for the labels by which policies select pods. Labels that hooks set and remove come and go with the
// attempts. An attempt that was altered may have changed the object itself, so it is about the spec alone.
func (w *Writes) version(k attempt.Key, altered bool) string {
	generation := strconv.FormatInt(w.objects.Set.Generation, 10)
	at := func(o metav1.Object) string { return generation + " " + strconv.FormatInt(o.GetGeneration(), 10) }
	switch object := w.object(k); {
	case altered:
		return generation
	case k == attempt.AnyCreate(), k == attempt.Any(attempt.Resizing):
		return generation + w.room()
	case k.Verb == WritingStatus:
		return w.objects.Set.ResourceVersion
	case object == nil, attempt.OfBudget(k.Verb): // what other clients write on a budget makes no difference
		return generation
	case k.Verb == PatchingRevision: // what is written on it is wanted no more once it is there
		return object.GetResourceVersion()
	case w.objects.Set.Spec.Lifecycle != nil:
		return at(object)
	default:
		return at(object) + " " + labels.Set(object.GetLabels()).String()
	}
}

// room tells apart what the pods of the set leave of a quota: it is another one as soon as one of them goes or ends.
func (w *Writes) room() string {
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

// ofPlan reports whether planners are told of the refusals of a verb.
func ofPlan(verb attempt.Verb) bool {
	return !slices.Contains([]attempt.Verb{
		WritingStatus, CreatingRevision, PatchingRevision, DeletingRevision, AdoptingRevision, Doubting, Replacing, attempt.Preflighting,
	}, verb)
}

// ofObject reports whether what a verb writes is an object that exists.
func ofObject(verb attempt.Verb) bool {
	return !slices.Contains([]attempt.Verb{
		WritingStatus, CreatingRevision, AdoptingRevision, Doubting, Replacing, attempt.Preflighting, attempt.Creating, attempt.MakingClaims,
		attempt.CreatingBudget,
	}, verb)
}
