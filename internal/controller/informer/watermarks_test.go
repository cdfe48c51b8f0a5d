// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestSeen(t *testing.T) {
	t.Parallel()
	pod := func(namespace, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, ResourceVersion: version}}
	}
	s := &seen{newest: map[string]string{}}
	s.OnAdd(pod("a", "9"), true)
	s.OnUpdate(nil, pod("a", "10"))
	s.OnAdd(pod("a", "8"), false)
	s.OnAdd(pod("b", "20"), false)
	s.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: pod("b", "21")})
	s.OnAdd("no object", false)
	for namespace, want := range map[string]string{"a": "10", "b": "21", "c": "1"} {
		if got := s.in(namespace); got != want {
			t.Errorf("in(%s) = %s, want %s", namespace, got, want)
		}
	}
}
