// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMoments(t *testing.T) {
	t.Parallel()
	type told struct {
		pod     types.UID
		version string
		gone    bool
	}
	tests := map[string]struct {
		told []told
		want []bool
	}{
		"nothing":                 {told: nil, want: []bool{}},
		"a watch":                 {told: []told{{"a", "3", false}, {"b", "5", false}, {"a", "9", true}}, want: []bool{true, true, true}},
		"a list in another order": {told: []told{{"a", "3", false}, {"b", "9", false}, {"c", "7", false}, {"d", "8", false}, {"a", "12", false}}, want: []bool{true, false, false, true, true}},
		"what has not changed":    {told: []told{{"a", "3", false}, {"b", "5", false}, {"a", "3", false}}, want: []bool{true, true, true}},
		"what is gone":            {told: []told{{"a", "3", false}, {"b", "5", false}, {"c", "9", false}, {"b", "5", true}}, want: []bool{true, true, false, true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := make([]change[*corev1.Pod], len(tt.told))
			for i, c := range tt.told {
				changes[i].object = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: c.pod, ResourceVersion: c.version}}
				changes[i].gone = c.gone
			}
			if diff := cmp.Diff(tt.want, moments(changes)); diff != "" {
				t.Errorf("moments (-want +got):\n%s", diff)
			}
		})
	}
}
