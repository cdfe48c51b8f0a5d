// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
	"rollset.dev/rollset/internal/model/inplace"
	"rollset.dev/rollset/internal/model/snapshot"
)

// TestUnshown gives out two ids. A pod that was deleted and came back with its claims does not count for both of them.
func TestUnshown(t *testing.T) {
	t.Parallel()
	set := &v1beta1.RollSet{}
	set.Name, set.UID, set.Status.IssuedIDs = "web", "u1", 2
	ids := identity.NewSequence(set.UID)
	for name, tt := range map[string]struct {
		pods, gone []int
		want       bool
	}{
		"one is not shown":                {pods: []int{0}, want: true},
		"one came back":                   {pods: []int{0}, gone: []int{0}, want: true},
		"both are shown":                  {pods: []int{0, 1}},
		"one is there, one came and went": {pods: []int{0}, gone: []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			named := func(place int) *corev1.Pod {
				id := ids.At(place)
				pod := seenPod(id, id, 1, 900)
				pod.Labels = map[string]string{v1beta1.InstanceIDLabel: id}
				return pod
			}
			o := &snapshot.Objects{Set: set, Selector: labels.Everything()}
			for _, place := range tt.pods {
				o.Pods = append(o.Pods, named(place))
			}
			memory := &Memory{}
			in := Input{Objects: o, Replicas: memory.Join(o), Sighting: func(types.UID) inplace.Sighting { return inplace.Sighting{} }}
			for _, place := range tt.gone {
				in.Gone = append(in.Gone, named(place).Name)
			}
			Snapshot(in, memory)
			if _, _, some := memory.Unshown(set); some != tt.want {
				t.Errorf("some pods are not shown: %t", some)
			}
		})
	}
}
