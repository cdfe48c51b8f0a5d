// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"

	"rollset.dev/rollset/api/v1beta1"
)

// ResolveSteps returns how many pods are at the update revision when each step of a spec is done. A percentage rounds down,
// but to at least one pod, and no step undoes what the one before it did. The error names the malformed field.
func ResolveSteps(spec *v1beta1.RollSetSpec, replicas int) ([]int, error) {
	steps := spec.UpdateStrategy.RollingUpdate.Steps
	if len(steps) == 0 {
		return nil, nil
	}
	sizes := make([]int, len(steps))
	largest := 0
	for i := range steps {
		n, err := resolve(&steps[i].Updated, replicas, roundDown)
		if err != nil {
			return nil, fmt.Errorf("spec.updateStrategy.rollingUpdate.steps[%d].updated: %w", i, err)
		}
		largest = max(largest, min(max(n, 1), replicas))
		sizes[i] = largest
	}
	return sizes, nil
}
