// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1alpha1"
)

// Domain is a failure domain of a set: the pods with one value of the set's label, or one pod without the label.
type Domain struct {
	// Value is the value of the label.
	Value string
	// Pod is the name of the pod, if it does not have the label.
	Pod string
}

// CompareDomains orders domains by their names. Pods without the label come last.
func CompareDomains(a, b Domain) int {
	return cmp.Or(strings.Compare(a.Pod, b.Pod), strings.Compare(a.Value, b.Value))
}

// Domains returns how the set divides its pods into failure domains; nil if it does not.
func (s *Set) Domains() *v1alpha1.FailureDomains {
	if s.Strategy() != v1alpha1.RollingUpdateStrategy {
		return nil
	}
	return s.Spec.UpdateStrategy.RollingUpdate.Domains
}

// DomainOf returns the failure domain of a pod under a label key.
func DomainOf(pod *corev1.Pod, key string) Domain {
	if value, ok := pod.Labels[key]; ok {
		return Domain{Value: value}
	}
	return Domain{Pod: pod.Name}
}

// DomainWord returns what users call a domain under a label key: "zone" for topology.kubernetes.io/zone.
func DomainWord(key string) string { return key[strings.LastIndex(key, "/")+1:] }

// In returns a domain in words: "zone a", or "web-3 without a zone".
func (d Domain) In(key string) string {
	if d.Pod != "" {
		return d.Pod + " without a " + DomainWord(key)
	}
	return DomainWord(key) + " " + d.Value
}
