// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodsOfSetsOfAnyVersion(t *testing.T) {
	controller := func(apiVersion, kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "web", Controller: new(true)}}
	}
	tests := map[string]struct {
		owners []metav1.OwnerReference
		want   bool
	}{
		"this version":               {controller("apps.rollset.dev/v1beta1", "RollSet"), true},
		"another version":            {controller("apps.rollset.dev/v1beta1", "RollSet"), true},
		"another group":              {controller("apps.rollset.dev.example.com/v1alpha1", "RollSet"), false},
		"another kind":               {controller("apps.rollset.dev/v1beta1", "RollGroup"), false},
		"a core kind":                {controller("v1", "ReplicationController"), false},
		"an owner that controls not": {[]metav1.OwnerReference{{APIVersion: "apps.rollset.dev/v1beta1", Kind: "RollSet", Name: "web"}}, false},
		"no owner":                   {nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ofSet(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.owners}}); got != test.want {
				t.Errorf("ofSet() = %t, want %t", got, test.want)
			}
		})
	}
}
