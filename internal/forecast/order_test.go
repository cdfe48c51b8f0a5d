// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
)

// TestDependsOnOrder plans edits whose writes depend on which of two pods is ready first, and others whose writes do not.
func TestDependsOnOrder(t *testing.T) {
	t.Parallel()
	random := func(replicas, partition int32) func(*v1beta1.RollSetSpec) {
		return func(s *v1beta1.RollSetSpec) {
			s.PodIdentity, s.Replicas = v1beta1.RandomIdentity, &replicas
			s.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(2))
			s.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(partition))
		}
	}
	for name, test := range map[string]struct {
		before, after *v1beta1.RollSet
		want          bool
	}{
		// Two of three new pods come at the new template, and the third follows when they are available. Whether it is itself
		// ready then, and has to be taken out of service first, is chance.
		"a pod that moves while it starts": {web(inPlace, random(2, 2)), web(inPlace, random(5, 2), image("web:2")), true},
		"a rollout":                        {web(random(5, 0)), web(random(5, 0), image("web:2")), false},
		"a rollout in place":               {web(inPlace, random(5, 0)), web(inPlace, random(5, 0), image("web:2")), false},
		"more pods":                        {web(random(2, 0)), web(random(9, 0)), false},
	} {
		f := forecastOf(t, test.before, test.after)
		if got := strings.Contains(strings.Join(f.CannotKnow, "\n"), "order: which of the pods that start together"); got != test.want {
			t.Errorf("%s: depends on the order: %t; %v\n%s", name, got, f.CannotKnow, verbsOf(f))
		}
	}
}
