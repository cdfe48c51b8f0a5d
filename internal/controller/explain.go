// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/controller/watch"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan"
)

// Objects are a set and what it controls, as the API server has them.
type Objects struct {
	Set       *v1alpha1.RollSet
	Pods      []*corev1.Pod
	Revisions []*appsv1.ControllerRevision
	Claims    []corev1.PersistentVolumeClaim
	Classes   map[string]snapshot.Class
}

// Explain returns what a controller that has just started would write next for a set, and every write that it would hold
// back. Whether the API server accepts a pod of a revision is asked of accepts.
func Explain(o Objects, now time.Time, accepts func(snapshot.Revision) snapshot.Preflight) (action.Plan, error) {
	v := &view{
		set: o.Set, now: now, memory: new(memory).of(o.Set.UID), router: new(watch.Router),
		pods: o.Pods, revisions: o.Revisions, claims: o.Claims, classes: o.Classes,
	}
	var err error
	if v.resolved, err = resolveSpec(&o.Set.Spec); err != nil {
		return action.Plan{}, err
	}
	if v.selector, err = metav1.LabelSelectorAsSelector(o.Set.Spec.Selector); err != nil {
		return action.Plan{}, fmt.Errorf("spec.selector: %w", err)
	}
	v.replicas = replicas(v)
	found, err := revision.Resolve(v.revisionInput())
	if err != nil {
		return action.Plan{}, err
	}
	s := v.freeze(found)
	s.EveryHold = true
	maps.Copy(s.Blocked, new(Reconciler).blockedByOwnClaims(v, s))
	for {
		p := plan.Next(s)
		asked, ok := unanswered(p, s)
		if !ok {
			return p, nil
		}
		s.Preflights[asked] = accepts(revisionNamed(s, asked))
	}
}

// unanswered returns a revision that a plan asks the API server about and that it was not asked about yet.
func unanswered(p action.Plan, s *snapshot.Set) (name string, ok bool) {
	for _, a := range p.Actions {
		if ask, isAsk := a.(action.Preflight); isAsk {
			if _, answered := s.Preflights[ask.Revision]; !answered {
				return ask.Revision, true
			}
		}
	}
	return "", false
}

// revisionNamed returns the revision of a name; its template is nil if it is not known.
func revisionNamed(s *snapshot.Set, name string) snapshot.Revision {
	if r, ok := s.Known[name]; ok {
		return r
	}
	return snapshot.Revision{Name: name}
}
