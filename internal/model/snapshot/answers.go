// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/internal/model/attempt"
)

// Answers holds the API server's answers to earlier writes and dry runs.
type Answers struct {
	// Blocked holds why no pod can be created for an identity now: a claim belongs to another owner, or a foreign pod has
	// the name. Other identities are not affected.
	Blocked map[string]Block
	// Preflights are the answers to preflights, by revision. A revision without an entry was not asked about.
	Preflights map[string]Preflight
	// Refusals are the writes that the API server refused when last tried, or that are paused for a moment.
	Refusals map[attempt.Key]Refusal
}

// Refusal is a refused write.
type Refusal struct {
	// Message is the API server's message; empty if it was not asked, and the write is only paused for a moment.
	Message string
	// Overtaken is true if another client seems to have been faster. Users are not told.
	Overtaken bool
	// Unsettled is true if the state of the object is unknown: it changed since it was judged, or the write may have
	// happened after all.
	Unsettled bool
	// Definite is true if the API server understood the request, and did not fail itself.
	Definite bool
	// ByRule is true if a quota or a policy refused the write, and would refuse another object of the same content too.
	ByRule bool
	// Altered is true if the API server accepted the write and did not do what it says.
	Altered bool
	// OfClaim is true if it refused a claim of the pod, and was not asked about the pod.
	OfClaim bool
	// Retry is when to try again; zero if it may be tried now.
	Retry time.Duration
}

// Preflight is the API server's answer when asked whether it would accept a pod of a revision.
type Preflight struct {
	// Refusal is why it refuses the pod; empty if it would accept it.
	Refusal string
	// Failed is true if the API server, or an admission webhook, could not judge the pod. Refusal is the cause.
	Failed bool
	// Altered is true if the API server accepts the pod and makes another one of it, which is none of the set's. Each attempt would
	// leave such a pod, so a dry run comes before the next one.
	Altered bool
	// NoRights is true if the revision cannot be recorded because the manager may not do that. No pod gets it, but nothing is
	// wrong with its template.
	NoRights bool
	// Retry is when to ask again after a refusal: a policy may change while the template does not.
	Retry time.Duration
	// Pod is the pod as the API server would have created it, with defaults and admission applied. It is nil after a
	// refusal, and if the API server did not finish because a quota is full.
	Pod *corev1.Pod
}

// Unclear reports whether the API server has nothing against the pods but did not show what they would be.
func (p Preflight) Unclear() bool { return p.Refusal == "" && p.Pod == nil }

// Refuses reports whether the API server refuses such pods.
func (p Preflight) Refuses() bool { return p.Refusal != "" && !p.Failed }

// Block is why an identity cannot get its pod now.
type Block struct {
	// Claim is true if a claim blocks the pod, false if its name is taken.
	Claim bool
	// Reason names the blocking object and what to do about it.
	Reason string
	// Retry is when to look again, because no event reports that the block is gone; zero if an event will.
	Retry time.Duration
}

// LeavesAside reports whether a write must not be retried yet, because it or its verb was refused for the whole set.
func (a *Answers) LeavesAside(k attempt.Key) bool {
	r := a.Refusal(k)
	return r.Message != "" && r.Retry > 0
}

// Refused reports whether a write was refused a moment ago, and is not retried yet. A write with an unknown result was not: it
// may have happened.
func (a *Answers) Refused(k attempt.Key) bool { return a.LeavesAside(k) && !a.Refusal(k).Unsettled }

// Refusal returns the refusal of a write: its own or, if there is none, that of its verb.
func (a *Answers) Refusal(k attempt.Key) Refusal {
	if r, ok := a.Refusals[k]; ok && r.Retry > 0 {
		return r
	}
	if r, ok := a.Refusals[attempt.Any(k.Verb)]; ok {
		return r
	}
	return a.Refusals[k]
}

// RefusesCreate reports whether the API server refused the pod of an identity, or any pod of the set, when last asked. Such
// a pod is not on its way. After a conflict, or while the server fails, it is.
func (a *Answers) RefusesCreate(id string) bool {
	return a.Refusals[attempt.AnyCreate()].Definite || a.Refusals[attempt.Key{Verb: attempt.Creating, Object: id}].Definite
}

// RefusesAll reports whether the API server refused any pod of the set when last asked, whatever its revision. Where it refused a claim,
// it may accept pods of a revision that needs none.
func (a *Answers) RefusesAll() bool {
	r := a.Refusals[attempt.AnyCreate()]
	return r.Definite && !r.OfClaim
}

// MayBeDeleted reports whether it is not known what came of the last delete of a pod.
func (a *Answers) MayBeDeleted(pod *corev1.Pod) bool {
	return len(a.Refusals) > 0 && a.Refusals[attempt.OfPod(attempt.Deleting, pod)].Unsettled
}

// Unmovable returns the first refused write among those that move a pod to another revision; false if there is none. A write
// with an unknown result does not count: the pod may be on its way out, and no other pod may be disturbed in its place.
func (a *Answers) Unmovable(pod *corev1.Pod) (k attempt.Key, ok bool) {
	return a.firstOfMove(pod, a.Refused)
}

// WasRefused reports whether a write that moves a pod to another revision was refused when last tried, even if it may be tried
// again now.
func (a *Answers) WasRefused(pod *corev1.Pod) bool {
	_, refused := a.firstOfMove(pod, func(k attempt.Key) bool {
		r := a.Refusals[k]
		return r.Message != "" && !r.Unsettled && !r.Overtaken
	})
	return refused
}

// firstOfMove returns the first write for which a condition holds, among those that move a pod to another revision.
func (a *Answers) firstOfMove(pod *corev1.Pod, holds func(attempt.Key) bool) (k attempt.Key, ok bool) {
	if len(a.Refusals) == 0 {
		return k, false
	}
	for _, verb := range []attempt.Verb{attempt.Deleting, attempt.Relabeling, attempt.Closing, attempt.Updating, attempt.SettingState} {
		if k = attempt.OfPod(verb, pod); holds(k) {
			return k, true
		}
	}
	return k, false
}
