// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
)

func TestPodsThatChangedMeanwhileAreLookedAtAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*corev1.Pod) action.Action{
		"a label":            func(pod *corev1.Pod) action.Action { return action.Relabel{Pod: pod, Revision: revision} },
		"an update in place": func(pod *corev1.Pod) action.Action { return action.UpdateInPlace{Pod: pod, Revision: revision} },
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(v1beta1.RandomIdentity)
			pod := w.pod("web-0").Pod
			pod.ResourceVersion = "5"
			w.server.fail = func(string, client.Object) error {
				return apierrors.NewConflict(schema.GroupResource{}, "web-0", errors.New("changed"))
			}
			result := w.apply(t, write(pod))
			if result.Relabels.Err != nil || result.Updates.Err != nil {
				t.Errorf("result = %+v, want no failure", result)
			}
			if a := result.Attempts; len(a) != 1 || !a[0].Overtaken || a[0].Seen != "5" {
				t.Errorf("attempts = %+v, want one that was overtaken at 5", a)
			}
			if met, _ := w.store.Met("set", expectations.Cache{Pods: []*corev1.Pod{pod}}); !met {
				t.Error("Met() = false: the other pods of the set wait")
			}
		})
	}
}

// TestARefusalSaysNothingAboutAnEarlierAttempt refuses writes that were tried before. Whether they happened then is not known.
func TestARefusalSaysNothingAboutAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	writes := map[string]func(*corev1.Pod) action.Action{
		"a delete":           func(pod *corev1.Pod) action.Action { return action.Delete{Pod: pod, Cause: action.Move} },
		"an update in place": func(pod *corev1.Pod) action.Action { return action.UpdateInPlace{Pod: pod, Revision: revision} },
	}
	for name, write := range writes {
		for now, overtaken := range map[string]bool{"5": false, "6": true, "": true} {
			t.Run(name+" at "+now, func(t *testing.T) {
				t.Parallel()
				w := newWorld(v1beta1.RandomIdentity)
				pod := w.pod("web-0").Pod.DeepCopy()
				pod.ResourceVersion = "5"
				w.snap.Refusals = map[attempt.Key]snapshot.Refusal{action.KeyOf(write(pod)): {Message: "no answer", Unsettled: true}}
				w.server.fail = func(string, client.Object) error {
					return apierrors.NewForbidden(schema.GroupResource{}, "web-0", errors.New("not yet"))
				}
				if shown := pod.DeepCopy(); now == "" {
					delete(w.server.objects, pod.Name)
				} else {
					shown.ResourceVersion = now
					w.server.objects[pod.Name] = shown
				}
				if a := w.apply(t, write(pod)).Attempts; len(a) != 1 || a[0].Overtaken != overtaken {
					t.Errorf("attempts = %+v, want one, overtaken: %t", a, overtaken)
				}
			})
		}
	}
}
