// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestListAfterOutage checks that only the end of a list is a moment. Before it the API server was away. Pod a ended after
// pod b changed, and a list shows no order.
func TestListAfterOutage(t *testing.T) {
	t.Parallel()
	pod := func(uid types.UID, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	pods := timeline[*corev1.Pod]{now: map[types.UID]*corev1.Pod{}}
	pods.list([]*corev1.Pod{pod("a", "3"), pod("b", "5")}, time.Time{})
	pods.note(change[*corev1.Pod]{object: pod("c", "6")})
	if !pods.list([]*corev1.Pod{pod("b", "9"), pod("c", "6")}, time.Time{}) {
		t.Error("the list shows that a has ended; want it to count as a move")
	}
	if pods.list([]*corev1.Pod{pod("b", "9"), pod("c", "6")}, time.Time{}) {
		t.Error("nothing came or went; want no move")
	}
	type told struct {
		Pod     types.UID
		Version string
		Gone    bool
		Moment  bool
	}
	var got []told
	for _, c := range pods.changes {
		got = append(got, told{c.object.UID, c.object.ResourceVersion, c.gone, !c.listing})
	}
	want := []told{
		{"a", "3", false, false},
		{"b", "5", false, true},
		{"c", "6", false, true},
		{"b", "9", false, false},
		{"c", "6", false, false},
		{"a", "3", true, true},
		{"b", "9", false, false},
		{"c", "6", false, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestListIsShown checks that a record that is older than a list does not count as showing it.
func TestListIsShown(t *testing.T) {
	t.Parallel()
	pod := func(uid types.UID, version string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{pod("a", "3"), pod("b", "5")}}
	tests := map[string]struct {
		now     []corev1.Pod
		version uint64
		want    bool
	}{
		"the same, and nothing happened since":      {[]corev1.Pod{pod("a", "3"), pod("b", "5")}, 5, true},
		"something happened since":                  {nil, 10, true},
		"an object is not seen yet":                 {[]corev1.Pod{pod("a", "3")}, 3, false},
		"an object is seen in an older version":     {[]corev1.Pod{pod("a", "3"), pod("b", "4")}, 4, false},
		"the end of another object is not seen yet": {[]corev1.Pod{pod("a", "3"), pod("b", "5"), pod("c", "6")}, 6, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods := &timeline[*corev1.Pod]{now: map[types.UID]*corev1.Pod{}, version: tc.version}
			for i := range tc.now {
				pods.now[tc.now[i].UID] = &tc.now[i]
			}
			isShown, err := isShown(pods, list)
			if err != nil {
				t.Fatal(err)
			}
			if got := isShown(); got != tc.want {
				t.Errorf("isShown() = %t, want %t", got, tc.want)
			}
		})
	}
}
