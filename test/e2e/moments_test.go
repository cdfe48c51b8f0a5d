// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMoments(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		versions []string
		want     []bool
	}{
		"nothing":                    {versions: nil, want: []bool{}},
		"a watch":                    {versions: []string{"3", "5", "9"}, want: []bool{true, true, true}},
		"a list in another order":    {versions: []string{"3", "9", "7", "8", "12"}, want: []bool{true, false, false, true, true}},
		"what is gone from the list": {versions: []string{"3", "5", "9", "5"}, want: []bool{true, true, false, true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := make([]change[*corev1.Pod], len(tt.versions))
			for i, version := range tt.versions {
				changes[i].object = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
			}
			if diff := cmp.Diff(tt.want, moments(changes)); diff != "" {
				t.Errorf("moments (-want +got):\n%s", diff)
			}
		})
	}
}
