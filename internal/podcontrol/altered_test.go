// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

func without(label string) func(client.Object) {
	return func(object client.Object) {
		labels := maps.Clone(object.GetLabels())
		delete(labels, label)
		object.SetLabels(labels)
	}
}

// TestAlteredPodsAreNoPods lets a policy make something else of new pods. The first one ends the batch, and refuses the template.
func TestAlteredPodsAreNoPods(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rewrite func(client.Object)
		want    string
	}{
		"another label": {
			rewrite: func(o client.Object) { o.SetLabels(map[string]string{"app": "other"}) },
			want:    `changed label app to "other"`,
		},
		"another revision": {
			rewrite: func(o client.Object) { o.SetLabels(map[string]string{"app": "web", v1beta1.RevisionLabel: "x"}) },
			want:    `changed label controller-revision-hash from "web-1" to "x", so that the pod is not what the set needs`,
		},
		"the mark of surge": {
			rewrite: func(o client.Object) { o.SetLabels(map[string]string{"app": "web", v1beta1.SurgeLabel: "true"}) },
			want:    `changed label apps.rollset.dev/surge from "" to "true"`,
		},
		"a label less": {rewrite: without("app"), want: "dropped label app"},
		"no owner":     {rewrite: func(o client.Object) { o.SetOwnerReferences(nil) }, want: "changed whom the object belongs to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(v1beta1.OrdinalIdentity)
			w.server.rewrite = tt.rewrite
			result := w.apply(t, creates(10)...)
			if diff := cmp.Diff([]string{"create web-0"}, w.server.log); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			answer := result.Preflights[revision]
			if !answer.Refuses() || !answer.Altered || !strings.Contains(answer.Refusal, tt.want) {
				t.Errorf("the template is not refused: %+v", answer)
			}
			if result.Creates.Done > 0 || result.Creates.Failed != 1 {
				t.Errorf("creates = %+v", result.Creates)
			}

			w.server.log = nil
			clear(w.server.objects)
			answer = w.apply(t, action.Preflight{Revision: revision}, action.Preflight{Revision: revision}).Preflights[revision]
			if !answer.Refuses() || !answer.Altered || !strings.Contains(answer.Refusal, tt.want) {
				t.Errorf("the dry run shows nothing: %+v", answer)
			}
			if diff := cmp.Diff([]string{"dry-run web-0"}, w.server.log); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwnLabelsThatPodsLack lets a policy drop labels of ours from new pods. They are the set's all the same.
func TestOwnLabelsThatPodsLack(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.OrdinalIdentity)
	w.server.rewrite = without(v1beta1.RevisionLabel)
	if result := w.apply(t, creates(3)...); result.Creates.Done != 3 || result.Preflights != nil {
		t.Errorf("result = %+v", result)
	}
}

// TestAlteredSurge lets a policy take from surge what makes it surge. The template is not refused, because members may be accepted. A dry
// run comes before the next attempt, and shows whether the policy is still there.
func TestAlteredSurge(t *testing.T) {
	t.Parallel()
	for _, label := range []string{v1beta1.SurgeLabel, v1beta1.RevisionLabel} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			w := newWorld(v1beta1.OrdinalIdentity)
			w.server.rewrite = without(label)
			create := action.Create{ID: "3", Revision: revision, Surge: true}
			var log []string
			attempts := func() {
				t.Helper()
				w.server.log = nil
				result := w.apply(t, create)
				if log = w.server.log; result.Preflights != nil {
					t.Errorf("the template is refused: %+v", result.Preflights)
				}
				if a := result.Attempts[0]; attempt.IsAltered(a.Err) != (w.server.rewrite != nil) {
					t.Errorf("attempt = %+v", a)
				}
			}
			if attempts(); len(log) != 1 {
				t.Errorf("requests %v, want one create", log)
			}
			clear(w.server.objects)
			w.snap.Refusals = map[attempt.Key]snapshot.Refusal{action.KeyOf(create): {Message: "altered", Altered: true}}
			attempts()
			if diff := cmp.Diff([]string{"dry-run web-3"}, log); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			w.server.rewrite = nil
			attempts()
			if diff := cmp.Diff([]string{"dry-run web-3", "create web-3"}, log); diff != "" {
				t.Errorf("requests without the policy (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAlteredPatchesAreRefused lets a policy take back what is written to an object.
func TestAlteredPatchesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(v1beta1.OrdinalIdentity)
	pod := w.pod("web-0").Pod
	pod.Labels = map[string]string{"app": "web"}
	w.server.store(pod.DeepCopy())
	own := claim(map[string]string{"app": "web"})
	w.server.store(own)
	orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "default"}}
	w.server.store(orphan)
	set := w.set.DeepCopy()
	w.server.store(set)
	for name, tt := range map[string]struct {
		rewrite func(client.Object)
		do      action.Action
		want    string
	}{
		"a dropped label": {
			rewrite: without(v1beta1.RevisionLabel), do: action.Relabel{Pod: pod, Revision: revision},
			want: "relabel pod web-0: the API server accepted the write and dropped label controller-revision-hash",
		},
		"a changed label": {
			rewrite: func(o client.Object) { o.SetLabels(map[string]string{v1beta1.RevisionLabel: "x"}) }, do: action.Relabel{Pod: pod, Revision: revision},
			want: `changed label controller-revision-hash to "x"`,
		},
		"an owner that does not come": {
			rewrite: func(o client.Object) { o.SetOwnerReferences(nil) }, do: action.Adopt{Pod: orphan},
			want: "adopt pod web-1: the API server accepted the write and changed whom the object belongs to",
		},
		"an owner that does not go": {
			rewrite: func(o client.Object) { o.SetOwnerReferences(pod.OwnerReferences) }, do: action.Release{Pod: pod},
			want: "release pod web-0: the API server accepted the write and changed whom the object belongs to",
		},
		"a label of a claim": {
			rewrite: without(v1beta1.SetLabel), do: action.OwnClaim{ID: "0", Claim: own},
			want: "patch claim data-web-0: the API server accepted the write and dropped label apps.rollset.dev/set",
		},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // the cases share the server
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "RollSet", Name: "web", UID: "set", Controller: new(true)}}
			w.server.rewrite = tt.rewrite
			result := w.apply(t, tt.do)
			if len(result.Attempts) != 1 || !attempt.IsAltered(result.Attempts[0].Err) || !strings.Contains(result.Attempts[0].Err.Error(), tt.want) {
				t.Fatalf("attempts = %+v, want %s", result.Attempts, tt.want)
			}
			if got := result.Attempts[0].Key; got != action.KeyOf(tt.do) {
				t.Errorf("the refusal is of %v", got)
			}

			w.snap.Refusals = map[attempt.Key]snapshot.Refusal{action.KeyOf(tt.do): {Message: "conflict", Unsettled: true}}
			defer func() { w.snap.Refusals = nil }()
			if again := w.apply(t, tt.do).Attempts; len(again) != 1 || again[0].Overtaken {
				t.Errorf("attempts after a conflict = %+v, want one that rests", again)
			}
		})
	}
}
