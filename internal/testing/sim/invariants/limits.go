// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/simulator/apiserver"
)

// Limits holds the numbers of a spec. They are computed a second time here, so that the judge does not share the
// controller's mistakes.
type Limits struct {
	// Replicas is the number of pods wanted.
	Replicas int
	// Partition is the number of pods that stay at the current revision.
	Partition int

	maxUnavailable, maxSurge int
}

func limitsOf(spec *v1beta1.RollSetSpec) Limits {
	l := Limits{Replicas: int(*spec.Replicas)}
	rolling := &spec.UpdateStrategy.RollingUpdate
	if spec.UpdateStrategy.Type == v1beta1.RollingUpdateStrategy {
		l.maxSurge = scaled(rolling.MaxSurge, l.Replicas, 99)
	}
	unavailable := rolling.MaxUnavailable
	switch {
	case unavailable != nil:
	case spec.PodIdentity == v1beta1.OrdinalIdentity:
		unavailable = new(intstr.FromInt32(1))
	default:
		unavailable = new(intstr.FromString("20%"))
	}
	up := 99
	if l.maxSurge > 0 {
		up = 0
	}
	l.maxUnavailable = scaled(unavailable, l.Replicas, up)
	if l.maxUnavailable == 0 && l.maxSurge == 0 {
		l.maxUnavailable = 1
	}
	if spec.UpdateStrategy.Type != v1beta1.RollingUpdateStrategy {
		return l
	}
	l.Partition = min(scaled(rolling.Partition, l.Replicas, 99), l.Replicas)
	if p := rolling.Partition; p != nil && p.Type == intstr.String && p.StrVal != "0%" && p.StrVal != "100%" && l.Replicas > 1 {
		l.Partition = min(max(l.Partition, 1), l.Replicas-1)
	}
	return l
}

// Limits returns the numbers of a set. The current step of a rollout can raise the partition, and a current revision
// that was never complete makes it 0.
func (c *Cluster) Limits(set *v1beta1.RollSet) Limits {
	l, kept := limitsOf(&set.Spec), 0
	if step, ok := c.stepAtWork(set); ok {
		kept = l.Replicas - allowed(set, step)
	}
	l.Partition = max(l.Partition, kept)
	if c.unproven(set) {
		l.Partition = 0
	}
	return l
}

func scaled(v *intstr.IntOrString, replicas, up int) int {
	if v == nil {
		return 0
	}
	if v.Type == intstr.Int {
		return int(v.IntVal)
	}
	percent := 0
	if _, err := fmt.Sscanf(v.StrVal, "%d%%", &percent); err != nil {
		apiserver.Unmodeled("the percentage %q", v.StrVal)
	}
	return (replicas*percent + up) / 100
}

// stepAtWork returns the current step in the status of a set, counted from 0. It is not ok if there is none.
func (c *Cluster) stepAtWork(set *v1beta1.RollSet) (step int, ok bool) {
	r, steps := set.Status.Rollout, set.Spec.UpdateStrategy.RollingUpdate.Steps
	if c.unproven(set) { // the status may show steps from when the current revision could not be seen
		return 0, false
	}
	if r == nil || r.Step < 1 || int(r.Step) > len(steps) || c.VersionNamed(r.Revision) != c.VersionOf(&set.Spec.Template) {
		return 0, false
	}
	if object := c.revision(r.Revision); object != nil {
		if number, err := strconv.Atoi(object.Annotations[completed]); err == nil && number > 0 {
			return 0, false // a status that still shows its steps is outdated
		}
	}
	return int(r.Step) - 1, set.Spec.UpdateStrategy.Type == v1beta1.RollingUpdateStrategy
}

// allowed returns the number of pods that a step, counted from 0, allows at the update revision. After the steps were edited, the
// last one allows as many as there were.
func allowed(set *v1beta1.RollSet, step int) int {
	sizes := sizesOf(&set.Spec)
	size := sizes[step]
	if r := set.Status.Rollout; r != nil && int(r.Step) == len(sizes) && step == len(sizes)-1 && r.Updated != nil && r.Updated.Type == intstr.Int {
		size = max(size, min(r.Updated.IntValue(), int(*set.Spec.Replicas)))
	}
	return size
}

// sizesOf returns the number of updated pods of each step.
func sizesOf(spec *v1beta1.RollSetSpec) []int {
	var sizes []int
	for _, step := range spec.UpdateStrategy.RollingUpdate.Steps {
		n := min(max(1, scaled(&step.Updated, int(*spec.Replicas), 0)), int(*spec.Replicas))
		sizes = append(sizes, max(n, slices.Max(append(sizes, 0))))
	}
	return sizes
}
