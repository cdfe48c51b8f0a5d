// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/identity"
)

// Settings holds the spec of a set, and the numbers resolved from it.
type Settings struct {
	Name string
	UID  types.UID
	Spec *v1beta1.RollSetSpec
	Numbers
}

// Numbers are the numbers and selectors of a spec, resolved.
type Numbers struct {
	// Limits are resolved against replicas.
	Limits Limits
	// Priorities decide which healthy pods are updated first.
	Priorities Priorities
	// Ordinals are the numbers that the pods of a set with podIdentity Ordinal may have.
	Ordinals identity.Ordinals
}

// Lists reports whether podsToDelete contains the name of a pod.
func (s *Settings) Lists(podName string) bool {
	return s.Spec.ScaleStrategy != nil && slices.Contains(s.Spec.ScaleStrategy.PodsToDelete, podName)
}

// PodName returns the name of an identity's pod, whether it exists or not.
func (s *Settings) PodName(id string) string { return identity.PodName(s.Name, id) }

// IDOf returns the identity in a pod's name, or the whole name if it is not one of the set's own.
func (s *Settings) IDOf(podName string) string {
	if id, ok := strings.CutPrefix(podName, s.Name+"-"); ok {
		return id
	}
	return podName
}

// Ordinal reports whether the set's pods have ordinals.
func (s *Settings) Ordinal() bool { return s.Spec.PodIdentity == v1beta1.OrdinalIdentity }

// OrderedReady reports whether pods are created and scaled down one after the other.
func (s *Settings) OrderedReady() bool {
	return s.Spec.ManagementPolicy() == v1beta1.OrderedReadyPodManagement
}

// Paused reports whether a user froze the revisions of the pods.
func (s *Settings) Paused() bool { return s.Spec.UpdateStrategy.RollingUpdate.Paused }

// Strategy returns the type of the update strategy.
func (s *Settings) Strategy() v1beta1.UpdateStrategyType {
	if t := s.Spec.UpdateStrategy.Type; t != "" {
		return t
	}
	return v1beta1.RollingUpdateStrategy
}

// InUse returns the place of an ordinal among those that the set uses, counted from 0; false if the set does not use it.
func (s *Settings) InUse(ordinal int) (place int, ok bool) {
	k, usable := s.Ordinals.Rank(ordinal)
	return k, usable && k < s.Limits.Replicas
}

// Condemned reports whether a replica has an ordinal that the set does not use.
func (s *Settings) Condemned(r *Replica) bool {
	if !s.Ordinal() {
		return false
	}
	_, used := s.InUse(r.Ordinal)
	return !used
}

// MinReady returns how long a pod must have been ready to be available.
func (s *Settings) MinReady() time.Duration {
	return time.Duration(s.Spec.MinReadySeconds) * time.Second
}

// ProgressDeadline returns the time that a set has for each step; false if it is unlimited.
func (s *Settings) ProgressDeadline() (deadline time.Duration, limited bool) {
	const standard = 600 * time.Second // the default of the API
	switch seconds := s.Spec.ProgressDeadlineSeconds; {
	case seconds == nil:
		return standard, true
	case *seconds == math.MaxInt32:
		return 0, false
	default:
		return time.Duration(*seconds) * time.Second, true
	}
}

// Domains returns how the set divides its pods into failure domains; nil if it does not.
func (s *Settings) Domains() *v1beta1.FailureDomains {
	if s.Strategy() != v1beta1.RollingUpdateStrategy {
		return nil
	}
	return s.Spec.UpdateStrategy.RollingUpdate.Domains
}
