// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/revision"
)

// asked is a world in which users make requests about revisions by their images.
type asked struct {
	*world
	t *testing.T
}

func (a asked) set(key, image string) {
	if a.world.set.Annotations == nil {
		a.world.set.Annotations = map[string]string{}
	}
	name := image
	if object := a.named(image); object != nil {
		name = object.Name
	}
	a.world.set.Annotations[key] = name
}

func (a asked) unset(key string) { delete(a.world.set.Annotations, key) }

// want checks whether the update revision is given up now, permanently.
func (a asked) want(rejected bool, when string) {
	a.t.Helper()
	if r := a.settle(a.t); r.Rejected != rejected || r.Rejected != (r.Verdict != "") {
		a.t.Errorf("%s: rejected %t, %q", when, r.Rejected, r.Verdict)
	}
}

func TestAbortAndRetry(t *testing.T) {
	t.Parallel()
	const abort, retry = v1beta1.AbortAnnotation, v1beta1.RetryAnnotation
	a := asked{rolledOut(t, 2), t}
	a.set(abort, "app:v1")
	a.want(false, "the current revision is named")
	a.set(abort, "garbage")
	a.want(false, "nothing is named")
	a.set(retry, "app:v2")
	a.want(false, "there is no verdict to take back")
	a.set(abort, "app:v2")
	a.want(true, "aborted, and the retry is older")
	if got := a.settle(t).Verdict; got != revision.Aborted {
		t.Errorf("the verdict is %q", got)
	}
	a.unset(retry)
	a.want(true, "the annotation that asked for a retry is gone")
	a.unset(abort)
	a.want(true, "the annotation that asked for it is gone")
	a.set(retry, "app:v1")
	a.want(true, "a retry of another revision")
	a.set(retry, "app:v2")
	a.want(false, "tried again")
	a.settle(t)
	a.named("app:v2").Annotations[revision.RejectedAnnotation] = "StepFailed"
	a.want(true, "given up by itself, and the retry was of the time before")
	a.unset(retry)
	a.settle(t)
	a.set(retry, "app:v2")
	a.want(false, "tried again once more")
	a.set(abort, "app:v2")
	a.want(true, "aborted again")
	a.image("app:v3")
	a.want(false, "another template")
	a.image("app:v2")
	a.want(false, "the same one again, and the abort was of the time before")
}

func TestAbortNeedsSomewhereToGo(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.settle(t)
	w.image("app:v2")
	w.settle(t)
	a := asked{w, t}
	a.set(v1beta1.AbortAnnotation, "app:v2")
	a.want(false, "the first revision was never complete")
}

func TestWasProven(t *testing.T) {
	t.Parallel()
	w := rolledOut(t, 3)
	if w.settle(t).WasProven {
		t.Error("a new revision was complete before")
	}
	w.image("app:v1")
	if !w.resolve(t).WasProven || !w.settle(t).WasProven {
		t.Error("the first revision was never complete")
	}
}

// TestSentence checks the message of a rollback for each verdict.
func TestSentence(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[string]string{
		"ProgressDeadlineExceeded": "missed its deadline",
		"true":                     "missed its deadline", // any value that a user wrote
		"Aborted":                  "was aborted",
		"StepFailed: step 2 of 4: gate A is False: 3% errors": "failed at step 2 of 4 (gate A is False: 3% errors)",
	} {
		if got := revision.Sentence(verdict); got != want {
			t.Errorf("%s: %q, want %q", verdict, got, want)
		}
	}
}

// TestVerdictOutlivesTheRevision deletes the ControllerRevision of a rollout that was given up. The status says why it was.
func TestVerdictOutlivesTheRevision(t *testing.T) {
	t.Parallel()
	for _, verdict := range []string{"ProgressDeadlineExceeded", "Aborted", "StepFailed: step 2 of 4: gate A is False: 3% errors (of 7)"} {
		tests := map[string]struct {
			change func(w *world, condition *metav1.Condition)
			want   bool
		}{
			"the spec is as it was":           {want: true},
			"the set is scaled":               {change: func(w *world, _ *metav1.Condition) { w.scale(7) }, want: true},
			"it was retried and failed again": {change: func(w *world, _ *metav1.Condition) { asked{w, t}.set(v1beta1.RetryAnnotation, "app:v2") }, want: true},
			"the template is another":         {change: func(w *world, _ *metav1.Condition) { w.image("app:v3") }},
			"it was not given up when scaled to zero": {change: func(_ *world, c *metav1.Condition) {
				c.Reason, c.Message = v1beta1.ReasonNoReplicas, "no pods are wanted"
			}},
			"it was not given up": {change: func(_ *world, c *metav1.Condition) { c.Reason = v1beta1.ReasonRollingUpdate }},
			"another revision was given up": {change: func(w *world, _ *metav1.Condition) {
				w.scale(7)
				w.set.Status.UpdateRevision = w.named("app:v1").Name
			}},
		}
		for when, tt := range tests {
			t.Run(when+", "+verdict, func(t *testing.T) {
				t.Parallel()
				w := rolledOut(t, 2)
				object := w.named("app:v2")
				condition := metav1.Condition{
					Type: v1beta1.ConditionProgressing, Reason: v1beta1.ReasonRolledBack,
					Message: "revision " + object.Name + " " + revision.Sentence(verdict) + " and is rolled back; 3 of 3 pods at revision x",
				}
				if tt.change != nil {
					tt.change(w, &condition)
				}
				w.set.Status.Conditions = []metav1.Condition{condition}
				delete(w.revisions, object.Name)
				r := w.resolve(t)
				got := ""
				if tt.want {
					got = verdict
				}
				if r.Rejected != tt.want || r.Verdict != got || r.Create == nil || r.Create.Annotations[revision.RejectedAnnotation] != got {
					t.Errorf("rejected %t, %q, to be created: %v", r.Rejected, r.Verdict, r.Create)
				}
				if r = w.settle(t); r.Rejected != tt.want {
					t.Errorf("rejected in the end: %t", r.Rejected)
				}
			})
		}
	}
}

func TestAborts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		abort, retry, revision string
		want                   bool
	}{
		{"web-1", "", "web-1", true}, {"web-1", "web-1", "web-1", false}, {"web-1", "", "web-2", false}, {"", "web-1", "", false},
	} {
		set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AbortAnnotation: tt.abort, v1beta1.RetryAnnotation: tt.retry}}}
		if got := revision.Aborts(set, tt.revision); got != tt.want {
			t.Errorf("%+v: aborts %t", tt, got)
		}
	}
}
