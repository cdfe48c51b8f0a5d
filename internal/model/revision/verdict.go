// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
)

const (
	// RejectedAnnotation marks, with any value, a ControllerRevision whose rollout was given up. The value says why: a word,
	// with an optional sentence after a colon. It is removed when the revision becomes the newest again, or is retried.
	RejectedAnnotation = "apps.rollset.dev/rejected"

	// AbortedAnnotation records, on a ControllerRevision, that the set's annotation abort was handled, so that it takes
	// effect once. It is removed when that annotation no longer names the revision.
	AbortedAnnotation = "apps.rollset.dev/aborted"

	// RetriedAnnotation records the same for the set's annotation retry.
	RetriedAnnotation = "apps.rollset.dev/retried"

	// Aborted is the value of RejectedAnnotation for a rollout that a user gave up.
	Aborted = "Aborted"
)

// verdicts finds out whether the update revision was given up.
type verdicts struct{ *resolver }

// judge does what users ask for on the set: to give up the update revision, or to retry it. The ControllerRevision records
// it, and the request takes effect once that is written. A revision is given up only if there is another one to go back to.
func (r verdicts) judge() {
	found, ok := r.intact[r.out.Update.Name]
	if !ok || r.out.Bump != nil { // other changes are written first
		return
	}
	object := found.object.DeepCopy()
	_, rejected := object.Annotations[RejectedAnnotation]
	abort := r.asks(v1beta1.AbortAnnotation, object, AbortedAnnotation)
	retry := r.asks(v1beta1.RetryAnnotation, object, RetriedAnnotation)
	switch {
	case abort && r.canGoBack():
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, RejectedAnnotation, Aborted)
	case retry && rejected:
		delete(object.Annotations, RejectedAnnotation)
	}
	if marked(object) != marked(found.object) {
		r.out.Bump = object
	}
}

// recallVerdict takes the verdict on an update revision whose ControllerRevision is lost from the status: its pods must not be
// moved again because a user deleted an object. A revision that cannot be recorded again has no verdict, because no user could take
// it back.
func (r verdicts) recallVerdict() {
	progressing := meta.FindStatusCondition(r.Set.Status.Conditions, v1beta1.ConditionProgressing)
	if r.out.Update.Name != r.Set.Status.UpdateRevision || progressing == nil {
		return
	}
	hasVerdict := progressing.Reason == v1beta1.ReasonRolledBack || progressing.Reason == v1beta1.ReasonNoReplicas
	if hasVerdict && strings.Contains(progressing.Message, " and is rolled back") {
		r.out.Rejected, r.out.Verdict = true, verdictIn(progressing.Message, r.out.Update.Name)
	}
}

// keepVerdict records a verdict that was taken from the status, and that what users asked for was handled: a retry from before
// would take the verdict back.
func (r verdicts) keepVerdict(object *appsv1.ControllerRevision) {
	if !r.out.Rejected {
		return
	}
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, RejectedAnnotation, r.out.Verdict)
	r.asks(v1beta1.AbortAnnotation, object, AbortedAnnotation)
	r.asks(v1beta1.RetryAnnotation, object, RetriedAnnotation)
}

// verdictIn returns the verdict on a revision in a message with its [Sentence].
func verdictIn(message, name string) string {
	_, what, _ := strings.Cut(message, name+" ")
	what, _, _ = strings.Cut(what, " and is rolled back")
	failed, isFailure := strings.CutPrefix(what, "failed at ")
	at, why, explained := strings.Cut(strings.TrimSuffix(failed, ")"), " (")
	switch {
	case what == "was aborted":
		return Aborted
	case isFailure && explained:
		return v1beta1.ReasonStepFailed + ": " + at + ": " + why
	default:
		return v1beta1.ReasonProgressDeadlineExceeded
	}
}

// asks reports whether an annotation of the set makes a request that was not handled yet, and records that it is now.
func (r verdicts) asks(key string, object *appsv1.ControllerRevision, mark string) bool {
	if r.Set.Annotations[key] != object.Name {
		delete(object.Annotations, mark)
		return false
	}
	if has(object, mark) {
		return false
	}
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, mark, "true")
	return true
}

// Aborts reports whether a user asks on a set to give up a revision, and not to retry it.
func Aborts(set *v1beta1.RollSet, revision string) bool {
	return revision != "" && set.Annotations[v1beta1.AbortAnnotation] == revision && set.Annotations[v1beta1.RetryAnnotation] != revision
}

// canGoBack reports whether there is another revision that the pods can go back to.
func (r verdicts) canGoBack() bool {
	return r.out.Current.Name != r.out.Update.Name && !r.out.Unproven && r.out.Current.Template != nil
}

// marks are the annotations of a ControllerRevision that record what users did.
type marks struct{ rejected, aborted, retried bool }

func marked(object *appsv1.ControllerRevision) marks {
	return marks{has(object, RejectedAnnotation), has(object, AbortedAnnotation), has(object, RetriedAnnotation)}
}

func has(object *appsv1.ControllerRevision, annotation string) bool {
	_, ok := object.Annotations[annotation]
	return ok
}

// Asked reports whether two states of a set make the same requests about its update revision.
func Asked(a, b *v1beta1.RollSet) bool {
	return a.Annotations[v1beta1.AbortAnnotation] == b.Annotations[v1beta1.AbortAnnotation] &&
		a.Annotations[v1beta1.RetryAnnotation] == b.Annotations[v1beta1.RetryAnnotation]
}

// Judged reports whether two states of a ControllerRevision differ in the verdict on it, or in what users asked for.
func Judged(a, b *appsv1.ControllerRevision) bool { return marked(a) != marked(b) }

// Sentence describes a verdict on a revision: what the revision did, or what was done to it.
func Sentence(verdict string) string {
	reason, why, _ := strings.Cut(verdict, ": ")
	switch reason {
	case Aborted:
		return "was aborted"
	case v1beta1.ReasonStepFailed:
		at, what, _ := strings.Cut(why, ": ")
		return "failed at " + at + " (" + what + ")"
	default:
		return "missed its deadline"
	}
}
