// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
)

// Limits are the numbers of a spec, percentages resolved against replicas. All are at least 0.
type Limits struct {
	// Replicas is the desired number of pods.
	Replicas int
	// Partition is how many pods are wanted at the current revision, at most Replicas. It has no effect before a revision
	// was completed: see Set.Partition.
	Partition int
	// Steps are how many pods are at the update revision when each step of a rollout is done.
	Steps []int
	// MaxUnavailable is how many pods may be unavailable because of an update; at least 1 if MaxSurge is 0.
	MaxUnavailable int
	// MaxSurge is how many pods may exist above Replicas because of an update.
	MaxSurge int
	// ScaleMaxUnavailable is how many pods may be unavailable before no more are created; -1 means no limit.
	ScaleMaxUnavailable int
}

// MinAvailable returns how many pods an update leaves available.
func (l Limits) MinAvailable() int { return max(0, l.Replicas-l.MaxUnavailable) }

// AtOnce returns how many pods an update may change at a time if none of them becomes unavailable; at least 1.
func (l Limits) AtOnce() int { return max(1, l.MaxUnavailable) }

// ResolveLimits resolves the numbers of a spec against its replicas. The error names the malformed field. The API server's
// validation rejects such a value, but an object may be older than the validation.
func ResolveLimits(spec *v1beta1.RollSetSpec) (Limits, error) {
	l := Limits{Replicas: 1, ScaleMaxUnavailable: -1}
	if spec.Replicas != nil {
		l.Replicas = int(*spec.Replicas)
	}
	if l.Replicas < 0 {
		return Limits{}, fmt.Errorf("spec.replicas: %d is negative", l.Replicas)
	}
	rolling := &spec.UpdateStrategy.RollingUpdate
	var err error
	if l.Partition, err = resolvePartition(rolling.Partition, l.Replicas); err != nil {
		return Limits{}, fmt.Errorf("spec.updateStrategy.rollingUpdate.partition: %w", err)
	}
	if l.Steps, err = ResolveSteps(spec, l.Replicas); err != nil {
		return Limits{}, err
	}
	if l.MaxSurge, err = resolve(rolling.MaxSurge, l.Replicas, roundUp); err != nil {
		return Limits{}, fmt.Errorf("spec.updateStrategy.rollingUpdate.maxSurge: %w", err)
	}
	if t := spec.UpdateStrategy.Type; t != "" && t != v1beta1.RollingUpdateStrategy {
		l.Partition, l.MaxSurge = 0, 0 // they only apply to a rolling update
	}
	if l.MaxUnavailable, err = resolve(maxUnavailable(spec), l.Replicas, roundingBeside(l.MaxSurge)); err != nil {
		return Limits{}, fmt.Errorf("spec.updateStrategy.rollingUpdate.maxUnavailable: %w", err)
	}
	if l.MaxUnavailable == 0 && l.MaxSurge == 0 {
		l.MaxUnavailable = 1
	}
	if s := spec.ScaleStrategy; s != nil && s.MaxUnavailable != nil {
		if l.ScaleMaxUnavailable, err = resolve(s.MaxUnavailable, l.Replicas, roundUp); err != nil {
			return Limits{}, fmt.Errorf("spec.scaleStrategy.maxUnavailable: %w", err)
		}
		l.ScaleMaxUnavailable = max(l.ScaleMaxUnavailable, 1) // 0 would never create a pod
	}
	return l, nil
}

// maxUnavailable returns the value of the spec, or the default of its identity.
func maxUnavailable(spec *v1beta1.RollSetSpec) *intstr.IntOrString {
	switch v := spec.UpdateStrategy.RollingUpdate.MaxUnavailable; {
	case v != nil:
		return v
	case spec.PodIdentity == v1beta1.OrdinalIdentity:
		return new(intstr.FromInt32(1))
	default:
		return new(intstr.FromString("20%"))
	}
}

type rounding int

const (
	roundDown rounding = iota
	roundUp
)

// roundingBeside returns how maxUnavailable rounds: up if maxSurge is 0, so that not both are 0.
func roundingBeside(maxSurge int) rounding {
	if maxSurge == 0 {
		return roundUp
	}
	return roundDown
}

var percentage = regexp.MustCompile(`^([0-9]{1,5})%$`)

// resolve turns a number or percentage into a number between 0 and what the value says of replicas. A nil value is 0.
func resolve(v *intstr.IntOrString, replicas int, round rounding) (int, error) {
	if v == nil {
		return 0, nil
	}
	if v.Type == intstr.Int {
		if v.IntVal < 0 {
			return 0, fmt.Errorf("%d is negative", v.IntVal)
		}
		return int(v.IntVal), nil
	}
	p, err := percent(v.StrVal)
	if err != nil {
		return 0, err
	}
	n := replicas * p
	if round == roundUp {
		n += 99
	}
	return n / 100, nil
}

// percent parses a percentage such as "20%".
func percent(s string) (int, error) {
	m := percentage.FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is neither a number nor a percentage such as \"20%%\"", s)
	}
	return strconv.Atoi(m[1])
}

// resolvePartition rounds up. A percentage strictly between 0 and 100 leaves a pod on each side if there is more than one:
// "99%" of ten pods is nine, not ten, because a rollout must update something.
func resolvePartition(v *intstr.IntOrString, replicas int) (int, error) {
	n, err := resolve(v, replicas, roundUp)
	if err != nil {
		return 0, err
	}
	if v != nil && v.Type == intstr.String && replicas > 1 {
		if p, _ := percent(v.StrVal); p > 0 && p < 100 {
			n = min(max(n, 1), replicas-1)
		}
	}
	return min(n, replicas), nil
}
