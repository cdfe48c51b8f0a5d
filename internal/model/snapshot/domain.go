// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/podstate"
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

// DomainOf returns the failure domain of a pod under a label key.
func DomainOf(pod *corev1.Pod, key string) Domain {
	if value, ok := pod.Labels[key]; ok {
		return Domain{Value: value}
	}
	return Domain{Pod: pod.Name}
}

// Origin records why a pod was created: in place of another pod, or to make the set larger.
type Origin struct {
	// Revision is the revision at which the pod was created. An update in place moves the pod without a new origin.
	Revision string
	// Added is true if the pod replaces none.
	Added bool
	// Known is true if Domain is that of the pod that it replaces.
	Known  bool
	Domain Domain
}

// String returns the value of the annotation, for domains under a label key. Neither keys nor values contain its separators.
func (o Origin) String(key string) string {
	switch {
	case o.Added:
		return o.Revision + " +"
	case !o.Known:
		return o.Revision + " " + key + "?"
	case o.Domain.Pod != "":
		return o.Revision + " " + key + "@" + o.Domain.Pod
	default:
		return o.Revision + " " + key + "=" + o.Domain.Value
	}
}

// OriginOf returns the origin of a pod, if its annotation speaks of domains under a label key; false otherwise.
func OriginOf(pod *corev1.Pod, key string) (o Origin, ok bool) {
	text := pod.Annotations[v1beta1.OriginAnnotation]
	if text == "" {
		return o, false
	}
	o.Revision, text, _ = strings.Cut(text, " ")
	if text == "+" {
		o.Added = true
		return o, true
	}
	text, ok = strings.CutPrefix(text, key)
	if !ok || text == "" {
		return o, false
	}
	switch name := text[1:]; text[0] {
	case '?':
		return o, true
	case '@':
		o.Known, o.Domain = true, Domain{Pod: name}
	case '=':
		o.Known, o.Domain = true, Domain{Value: name}
	default:
		return o, false
	}
	return o, true
}

// Home returns the failure domain that an unavailable pod is waited for in: that of the pod that it replaces, until it is
// available. It is not known if that pod was gone before anyone had seen it. counts is false for a pod that is added to the set
// and was never available, and for one of unknown origin that has no node.
func (r *Replica) Home(key string) (home Domain, known, counts bool) {
	origin, ok := OriginOf(r.Pod, key)
	switch {
	case ok && !origin.Added && (r.Node == "" || r.starts()):
		return origin.Domain, origin.Known, true
	case r.Node == "", ok && origin.Added && r.starts():
		return Domain{}, false, false
	default:
		return DomainOf(r.Pod, key), true, true
	}
}

// starts reports whether an unavailable pod has not been available yet.
func (r *Replica) starts() bool {
	return !r.Served && (r.Ready && !r.Updating || podstate.NeverReady(r.Pod))
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
