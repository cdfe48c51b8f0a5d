// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/defaults"
)

// Default sets the defaults of the CRD, as the API server does.
func Default(set *v1beta1.RollSet) { defaultRollSet(&set.Spec) }

// defaultRollSet sets the structural defaults of the CRD.
func defaultRollSet(spec *v1beta1.RollSetSpec) {
	orDefault(&spec.PodIdentity, v1beta1.RandomIdentity)
	orDefault(&spec.UpdateStrategy.Type, v1beta1.RollingUpdateStrategy)
	orNew(&spec.Replicas, 1)
	orNew(&spec.RevisionHistoryLimit, 10)
	orNew(&spec.ProgressDeadlineSeconds, 600)
	rolling := &spec.UpdateStrategy.RollingUpdate
	orNew(&rolling.Partition, intstr.FromInt32(0))
	orNew(&rolling.MaxSurge, intstr.FromInt32(0))
	orDefault(&rolling.PodUpdatePolicy, v1beta1.RecreatePod)
	orDefault(&rolling.OnDeadlineExceeded, v1beta1.HoldOnDeadline)
	orDefault(&rolling.OnStepFailed, v1beta1.HoldOnStepFailed)
}

// Made returns what the API server makes of the spec of a pod. One with late defaults makes the same of it as one without.
func Made(spec *corev1.PodSpec) *corev1.PodSpec {
	made := defaults.Filled(spec)
	DefaultLate(made)
	return made
}

// DefaultLate sets the default that a newer API server adds.
func DefaultLate(spec *corev1.PodSpec) { orNew(&spec.ShareProcessNamespace, false) }

func orDefault[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}

func orNew[T any](v **T, fallback T) {
	if *v == nil {
		*v = &fallback
	}
}
