// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package minimal

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// set holds a set and its pods, as the cache shows them.
type set struct {
	name   cache.ObjectName
	uid    types.UID
	client *client
	spec   Spec
	// metadataOnly is true if the present revision differs from the one before only in labels and annotations.
	metadataOnly bool
	pods         map[string]*pod
	// live and available count pods. stale holds those to move to the present revision.
	live, available int
	stale           []*pod
	serial          int
}

// pod holds a pod as the cache shows it, and the requests that were sent for it and is not seen yet.
type pod struct {
	name, revision string
	ready          bool
	// gone is true once the pod is to be deleted.
	gone bool
	// moving is true while the pod is updated in place behind its gate. container is the one that ran before.
	moving    bool
	container string
	// leaving is true while the pod moves and is to be patched as soon as it is not ready.
	leaving bool
	// opening is true from the decision to open the gate until that is seen.
	opening bool
}

// change changes what is known about a pod, and keeps the counts right.
func (s *set) change(p *pod, by func()) {
	s.count(p, -1)
	by()
	s.count(p, 1)
}

func (s *set) count(p *pod, by int) {
	if p.gone {
		return
	}
	s.live += by
	if p.ready && !p.moving {
		s.available += by
	}
}

// want records a new spec.
func (s *set) want(uid types.UID, spec *Spec) {
	moved := spec.Revision != s.spec.Revision
	s.metadataOnly = moved && image(&spec.Template) == image(&s.spec.Template)
	s.uid, s.spec = uid, *spec
	if !moved {
		return
	}
	s.stale = nil
	for _, p := range s.pods {
		if !p.gone && p.revision != spec.Revision {
			s.stale = append(s.stale, p)
		}
	}
}

func image(template *corev1.PodTemplateSpec) string {
	if len(template.Spec.Containers) == 0 {
		return ""
	}
	return template.Spec.Containers[0].Image
}

// see records a pod.
func (s *set) see(object *corev1.Pod) {
	p := s.pods[object.Name]
	if p == nil {
		p = s.expect(object.Name)
	}
	gate := condition(object, Gate)
	s.change(p, func() {
		p.revision = object.Labels[RevisionLabel]
		p.ready = condition(object, corev1.PodReady) == corev1.ConditionTrue
		p.gone = p.gone || object.DeletionTimestamp != nil
		if p.opening && gate == corev1.ConditionTrue && p.ready {
			p.opening, p.moving = false, false
		}
	})
	if p.gone || p.opening || !s.spec.InPlace {
		return
	}
	if p.leaving && !p.ready {
		p.leaving = false
		s.client.jobs.add(s.patch(p))
	}
	isNew := gate == "" && len(object.Spec.ReadinessGates) > 0
	if isNew || p.moving && p.revision == s.spec.Revision && p.runsAnew(object) {
		p.opening = true
		s.client.jobs.add(s.setGate(p, corev1.ConditionTrue))
	}
	p.container = container(object).ContainerID
}

// expect starts to count a pod that exists, or will.
func (s *set) expect(name string) *pod {
	p := &pod{name: name, revision: s.spec.Revision}
	s.pods[name] = p
	s.count(p, 1)
	return p
}

// lose records that a pod no longer exists.
func (s *set) lose(object *corev1.Pod) {
	if p := s.pods[object.Name]; p != nil {
		s.count(p, -1)
		delete(s.pods, object.Name)
	}
}

// runsAnew reports whether the pod runs another container than before, with the image of its spec. Nodes name images in full.
func (p *pod) runsAnew(object *corev1.Pod) bool {
	now := container(object)
	return now.Ready && now.ContainerID != p.container && strings.HasSuffix(now.Image, "/"+object.Spec.Containers[0].Image)
}

func container(object *corev1.Pod) corev1.ContainerStatus {
	if len(object.Status.ContainerStatuses) == 0 {
		return corev1.ContainerStatus{}
	}
	return object.Status.ContainerStatuses[0]
}

func condition(object *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for i := range object.Status.Conditions {
		if c := &object.Status.Conditions[i]; c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// advance requests everything that may be done now.
func (s *set) advance() {
	for s.live < s.spec.Replicas {
		s.client.jobs.add(s.create(s.expectNext()))
	}
	if s.live > s.spec.Replicas {
		s.shrink()
	}
	for len(s.stale) > 0 && (s.stale[0].gone || s.affordable(s.stale[0])) {
		p := s.stale[0]
		s.stale = s.stale[1:]
		if !p.gone {
			s.move(p)
		}
	}
}

func (s *set) expectNext() string {
	s.serial++
	name := fmt.Sprintf("%s-%d", s.name.Name, s.serial)
	s.expect(name)
	return name
}

func (s *set) shrink() {
	for _, p := range s.pods {
		if s.live == s.spec.Replicas {
			return
		}
		if !p.gone {
			s.change(p, func() { p.gone = true })
			s.client.jobs.add(s.delete(p.name))
		}
	}
}

// affordable reports whether a pod may be disturbed.
func (s *set) affordable(p *pod) bool {
	return s.metadataOnly && s.spec.InPlace || !p.ready || s.available > s.spec.Replicas-s.spec.MaxUnavailable
}

// move moves a pod to the present revision.
func (s *set) move(p *pod) {
	switch {
	case !s.spec.InPlace:
		s.change(p, func() { p.gone = true })
		s.client.jobs.add(both(s.delete(p.name), s.create(s.expectNext())))
	case s.metadataOnly:
		s.client.jobs.add(s.patch(p))
	case s.spec.Waits && p.ready:
		s.change(p, func() { p.moving, p.leaving = true, true })
		s.client.jobs.add(s.setGate(p, corev1.ConditionFalse))
	default:
		s.change(p, func() { p.moving = true })
		s.client.jobs.add(both(s.setGate(p, corev1.ConditionFalse), s.patch(p)))
	}
}
