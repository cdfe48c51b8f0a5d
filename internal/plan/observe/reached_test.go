// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
)

// TestReached looks at a set several times with one memory.
func TestReached(t *testing.T) {
	t.Parallel()
	type sight struct {
		replicas int32
		// told is status.reachedReplicas, and pods is the number of active pods.
		told int32
		pods int
		// made is how many pods are made after the look.
		made int
		want int
	}
	tests := map[string][]sight{
		"the pods that are there count":                         {{replicas: 5, pods: 3, want: 3}},
		"and the status, for a manager that has just started":   {{replicas: 5, told: 4, pods: 3, want: 4}},
		"a lost pod changes nothing":                            {{replicas: 5, pods: 3, want: 3}, {replicas: 5, pods: 2, want: 3}},
		"a scale-down does":                                     {{replicas: 5, told: 5, pods: 5, want: 5}, {replicas: 2, told: 5, pods: 5, want: 2}},
		"even if replicas rise again before the status says so": {{replicas: 5, told: 5, want: 5}, {replicas: 2, told: 5, want: 2}, {replicas: 5, told: 5, pods: 1, want: 2}},
		"a status that another manager has written counts":      {{replicas: 5, told: 2, pods: 2, want: 2}, {replicas: 5, told: 4, pods: 2, want: 4}},
		"pods that are made beside those of the look count":     {{replicas: 5, pods: 3, made: 1, want: 3}, {replicas: 5, pods: 3, want: 4}},
		"no more than were wanted at that look":                 {{replicas: 5, pods: 2, want: 2}, {replicas: 5, pods: 5, want: 5}, {replicas: 1, pods: 1, made: 1, want: 1}, {replicas: 5, pods: 1, want: 1}},
		"a status that is lost says nothing":                    {{replicas: 5, told: 4, pods: 2, want: 4}, {replicas: 5, pods: 2, want: 4}},
	}
	for name, sights := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := &Memory{}
			for i, s := range sights {
				set := &v1beta1.RollSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
				set.Spec.Replicas, set.Status.ReachedReplicas = &s.replicas, s.told
				if s.told > 0 {
					set.Status.ObservedGeneration = 1
				}
				pods := make([]*corev1.Pod, s.pods)
				for n := range pods {
					name := "web-" + string(rune('a'+n))
					pods[n] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}}}
				}
				if got := lookAgain(memory, set, pods...).Reached; got != s.want {
					t.Errorf("look %d: reached %d, want %d", i, got, s.want)
				}
				memory.Made(s.made)
			}
		})
	}
}
