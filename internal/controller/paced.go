// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/podstate"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/podcontrol"
	"rollset.dev/rollset/internal/status"
)

// The verbs of attempts that are no actions of a plan.
const (
	reporting action.Verb = "write status"
	recording action.Verb = "create revision"
	revising  action.Verb = "patch revision"
	pruning   action.Verb = "delete revision"
	doubting  action.Verb = "ask for pods that the cache does not show"
	replacing action.Verb = "replace pods that keep ending"
)

// calmAfter is how long a gate is not turned again to where we turned it, though somebody else has turned it since, or we
// have because of others: whoever turns gates all the time makes us write twice in that time, and not at every turn.
const calmAfter = time.Second

func creating(id string) action.Key { return action.Key{Verb: action.Creating, Object: id} }

// generation tells one spec from the next.
func (v *view) generation() string { return strconv.FormatInt(v.Set.Generation, 10) }

// objectOf returns the object that a key names; nil if the view has none.
func (v *view) objectOf(k action.Key) metav1.Object {
	if k.Object == "" {
		return nil
	}
	if v.objects == nil {
		v.objects = make(map[string]metav1.Object, len(v.Pods)+len(v.Orphans)+len(v.Claims)+len(v.Revisions))
		for _, pod := range slices.Concat(v.Pods, v.Orphans) {
			v.objects[string(pod.UID)] = pod
		}
		for i := range v.Claims {
			v.objects[string(v.Claims[i].UID)] = &v.Claims[i]
		}
		for _, object := range v.Revisions {
			v.objects[string(object.UID)] = object
		}
	}
	return v.objects[k.Object]
}

// version is what an attempt is about: the spec and the object. What else is written on a pod changes all the time and makes
// no difference, but for the labels by which policies select pods. Labels that hooks set and remove come and go with the
// attempts.
func (v *view) version(k action.Key) string {
	switch object := v.objectOf(k); {
	case k == action.AnyCreate():
		return v.generation() + v.room()
	case k.Verb == reporting:
		return v.Set.ResourceVersion
	case object == nil:
		return v.generation()
	case k.Verb == revising: // what is written on it is wanted no more once it is there
		return object.GetResourceVersion()
	case v.Set.Spec.Lifecycle != nil:
		return fmt.Sprint(v.generation(), object.GetGeneration())
	default:
		return fmt.Sprint(v.generation(), object.GetGeneration(), object.GetLabels())
	}
}

// room tells apart what the pods of the set leave of a quota: it is another one as soon as one of them goes or ends.
func (v *view) room() string {
	var sum uint64
	for _, pod := range v.Pods {
		if !podstate.Finished(pod) {
			h := fnv.New64a()
			_, _ = h.Write([]byte(pod.UID))
			sum ^= h.Sum64()
		}
	}
	return " " + strconv.FormatUint(sum, 36)
}

// wait returns how long an attempt has to wait.
func (v *view) wait(k action.Key) time.Duration {
	if !v.memory.attempts.Has(k) {
		return 0
	}
	seen := ""
	if object := v.objectOf(k); object != nil {
		seen = object.GetResourceVersion()
	}
	return v.memory.attempts.Wait(k, v.version(k), seen, v.Now)
}

// failure returns the last failure of an attempt; false if there is none that counts.
func (v *view) failure(k action.Key) (backoff.Failure, bool) {
	if !v.memory.attempts.Has(k) {
		return backoff.Failure{}, false
	}
	return v.memory.attempts.Failure(k, v.version(k))
}

// failed notes an attempt in vain.
func (v *view) failed(k action.Key, err error) {
	conflict := apierrors.IsConflict(err)
	f := backoff.Failure{
		Version: v.version(k), Message: err.Error(), Refused: conflict || podcontrol.Refused(err), Conflict: conflict,
		Unsettled: k.Object == "" || podcontrol.MayHaveHappened(err),
	}
	v.memory.attempts.Failed(k, f, v.Now)
}

// overtaken notes an attempt on an object that is not as the cache shows it.
func (v *view) overtaken(k action.Key, seen string, err error) {
	v.memory.attempts.Failed(k, backoff.Failure{Version: v.version(k), Seen: seen, Message: err.Error()}, v.Now)
}

// refusals are the writes that were refused a while ago and may be wanted still, as planners see them.
func (v *view) refusals() map[action.Key]snapshot.Refusal {
	v.memory.attempts.Forget(func(k action.Key) bool { return k.Object != "" && ofObject(k.Verb) && v.objectOf(k) == nil }, v.Now)
	refusals := map[action.Key]snapshot.Refusal{}
	for _, k := range v.memory.attempts.Keys() {
		if ofPlan(k.Verb) {
			f, counts := v.failure(k)
			if wait := v.wait(k); counts && (wait > 0 || f.Message != "") {
				refusals[k] = snapshot.Refusal{
					Message: f.Message, Overtaken: f.Overtaken, Unsettled: f.Unsettled || f.Seen != "",
					Definite: f.Refused && !f.Overtaken, Retry: wait,
				}
			}
		}
	}
	return refusals
}

// retry is when to try again what failed; zero if nothing did. No event tells that the API server would accept it now.
func (v *view) retry() (next time.Duration) {
	for _, k := range v.memory.attempts.Keys() {
		if k.Verb == action.Opening || k.Verb == action.Closing {
			if f, _ := v.failure(k); f.Message == "" {
				continue // it only rests, and may not be wanted again
			}
		}
		next = sooner(next, v.wait(k))
	}
	return next
}

// ofPlan reports whether planners are told of the refusals of a verb.
func ofPlan(verb action.Verb) bool {
	return !slices.Contains([]action.Verb{
		reporting, recording, revising, pruning, doubting, replacing, action.Preflighting,
	}, verb)
}

// ofObject reports whether what a verb writes is an object that exists.
func ofObject(verb action.Verb) bool {
	return !slices.Contains([]action.Verb{
		reporting, recording, doubting, replacing, action.Preflighting, action.Creating, action.MakingClaims,
	}, verb)
}

// answers are the answers to preflights as planners see them. A revision that may not be recorded is as good as refused.
func (v *view) answers(update string) map[string]snapshot.Preflight {
	answers := make(map[string]snapshot.Preflight, len(v.memory.preflights))
	for name, answer := range v.memory.preflights {
		answer.Retry = v.wait(action.Key{Verb: action.Preflighting, Object: name})
		answers[name] = answer
	}
	k := action.Key{Verb: recording, Object: update}
	if f, refused := v.failure(k); refused && f.Message != "" {
		answers[update] = snapshot.Preflight{Refusal: f.Message, Retry: v.wait(k)}
	}
	return answers
}

// remember notes what the next reconcile should know of this one.
func (r *Reconciler) remember(s step) {
	v, m, result := s.view, s.memory, s.result
	for _, a := range result.Attempts {
		v.note(a, result.NamespaceGone)
	}
	for _, a := range s.plan.Actions {
		if adopt, ok := a.(action.Adopt); ok { // it may go before the cache shows it as the set's
			r.router.NoteGone(v.Set.UID, adopt.Pod.Name)
		}
	}
	ended := func(a action.Action) bool {
		d, ok := a.(action.Delete)
		return ok && d.Cause == action.Finished && podstate.EndedSoon(d.Pod)
	}
	if result.Deletes.Done > 0 && slices.ContainsFunc(s.plan.Actions, ended) {
		m.attempts.Failed(action.Key{Verb: replacing}, backoff.Failure{Version: s.observed.Update.Name, Refused: true}, s.Now)
	}
	for name, answer := range result.Preflights {
		k := action.Key{Verb: action.Preflighting, Object: name}
		m.preflights[name] = answer
		if answer.Pod == nil { // refused, or not judged to the end
			m.attempts.Failed(k, backoff.Failure{Version: v.version(k), Refused: !answer.Failed}, s.Now)
		} else {
			m.attempts.Succeeded(k)
		}
	}
	r.rememberBlocked(v, result.Blocked)
	m.forgetRevisions(v.Revisions)
	r.Metrics.Wrote(result)
}

// note notes what became of a write.
func (v *view) note(a podcontrol.Attempt, namespaceGone bool) {
	attempts := &v.memory.attempts
	if a.Err == nil {
		attempts.Succeeded(action.Any(a.Key.Verb))
	}
	switch {
	case a.Err == nil && (a.Key.Verb == action.Opening || a.Key.Verb == action.Closing):
		attempts.Rest(a.Key, backoff.Failure{Version: v.version(a.Key)}, v.Now, calmAfter)
	case a.Err == nil:
		attempts.Succeeded(a.Key)
	case a.Blocked:
		attempts.Failed(a.Key, backoff.Failure{Version: v.version(a.Key), Refused: true}, v.Now)
	case a.Overtaken:
		v.overtaken(a.Key, a.Seen, a.Err)
	case a.Key.Verb == action.Creating && namespaceGone: // nothing can be made in it any more, and the set goes with it
		attempts.Rest(a.Key, backoff.Failure{Version: v.version(a.Key), Message: a.Err.Error(), Refused: true}, v.Now, backoff.Longest)
	default:
		v.failed(a.Key, a.Err)
	}
}

// shownRefusals is how many refused writes a condition names.
const shownRefusals = 5

// refused returns what the API server refuses of what is wanted, the most telling first; nil if there is nothing. A resize
// that it refuses is none: there are other ways, and the plan says which.
func (s step) refused() *status.Failure {
	var messages []string
	reason := ""
	for _, k := range s.due() {
		f, counts := s.view.failure(k)
		if !counts || f.Message == "" || f.Overtaken || k.Verb == action.Resizing && f.Refused || slices.Contains(messages, f.Message) {
			continue
		}
		if messages = append(messages, f.Message); reason == "" {
			reason, _ = reasonOf(k.Verb)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	text := strings.Join(messages[:min(len(messages), shownRefusals)], "; ")
	if more := len(messages) - shownRefusals; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return &status.Failure{Reason: reason, Message: text}
}

// due are the keys of all that is wanted, whether it is tried now or not, in a fixed order.
func (s step) due() []action.Key {
	var due []action.Key
	for _, k := range s.plan.Aside {
		due = append(due, k, action.Any(k.Verb))
	}
	for _, a := range s.plan.Actions {
		due = append(due, action.KeyOf(a), action.Any(action.KeyOf(a).Verb))
	}
	due = append(due, s.chores...)
	slices.SortFunc(due, func(a, b action.Key) int {
		_, first := reasonOf(a.Verb)
		_, second := reasonOf(b.Verb)
		return cmp.Or(cmp.Compare(first, second), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Object, b.Object))
	})
	return slices.Compact(due)
}

// reasonOf returns the reason of a refused write, and how telling it is: the lower, the more.
func reasonOf(verb action.Verb) (reason string, rank int) {
	switch verb {
	case action.Creating, recording:
		return podcontrol.FailedCreate, 0
	case action.Deleting:
		return podcontrol.FailedDelete, 1
	default:
		return podcontrol.FailedUpdate, 2
	}
}
