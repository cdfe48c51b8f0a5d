// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/controller/revisions"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/plan/observe"
)

// view is a set and all that it owns, as the cache shows them.
type view struct {
	snapshot.Objects

	// memory holds what earlier reconciles of the set found out.
	memory *setMemory
	// writes paces what is written.
	writes *backoff.Writes
	// spec is the spec in the form of planners. invalid says why it cannot be understood; nil if it can.
	spec    snapshot.Numbers
	invalid error
	// budgeted is true if the set had a disruption budget, as far as events showed.
	budgeted bool
	// revisions holds the revisions of the set.
	revisions *revisions.Look
	// replicas are the pods and claims by identity.
	replicas []snapshot.Replica
	// cache says how far the cache had come before pods were listed.
	cache expectations.Cache
}

// newView begins a view of a set: what is known of it without a list of what it owns.
func newView(set *v1beta1.RollSet, memory *setMemory, now time.Time) (v *view, err error) {
	v = &view{Objects: snapshot.Objects{Set: set, Now: now}, memory: memory}
	v.cache.Synced = map[schema.GroupKind]string{}
	v.writes = memory.attempts.For(&v.Objects)
	v.revisions = &revisions.Look{Objects: &v.Objects, Writes: v.writes, Memory: &memory.revisions}
	v.spec, v.invalid = observe.Resolve(&set.Spec)
	if v.Selector, err = metav1.LabelSelectorAsSelector(set.Spec.Selector); err != nil {
		return nil, fmt.Errorf("spec.selector: %w", err)
	}
	return v, nil
}

// look reads from the cache what the set owns.
func (v *view) look(ctx context.Context, cache client.Reader, pods informer.Pods) (err error) {
	if v.Pods, err = pods.With(ctx, v.Set.Namespace, string(v.Set.UID)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	v.cache.Pods = v.Pods
	orphans, err := pods.With(ctx, v.Set.Namespace, informer.Orphan)
	if err != nil {
		return fmt.Errorf("list orphans: %w", err)
	}
	v.Orphans = slices.DeleteFunc(orphans, func(pod *corev1.Pod) bool { return !v.Selector.Matches(labels.Set(pod.Labels)) })
	owned := &appsv1.ControllerRevisionList{}
	if err := v.list(ctx, cache, owned, client.MatchingFields{informer.ControllerIndex: string(v.Set.UID)}); err != nil {
		return fmt.Errorf("list revisions: %w", err)
	}
	lost := &appsv1.ControllerRevisionList{}
	if err := v.list(ctx, cache, lost, client.MatchingFields{informer.ControllerIndex: informer.Orphan}); err != nil {
		return fmt.Errorf("list revisions without a controller: %w", err)
	}
	v.revisions.Orphans = lost.Items
	for i := range owned.Items {
		v.Revisions = append(v.Revisions, &owned.Items[i])
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := v.list(ctx, cache, claims, client.MatchingFields{informer.SetIndex: v.Set.Name}); err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	v.Claims = claims.Items
	if len(v.Set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	classes := &storagev1.StorageClassList{} // there are few
	if err := cache.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list storage classes: %w", err)
	}
	v.Classes = observe.ClassesOf(classes.Items)
	return nil
}

// list lists objects of the set's namespace without copying them.
func (v *view) list(ctx context.Context, cache client.Reader, into client.ObjectList, by client.MatchingFields) error {
	return cache.List(ctx, into, client.InNamespace(v.Set.Namespace), by, client.UnsafeDisableDeepCopy)
}

// answers returns the answers to preflights as planners see them. A revision that cannot be recorded counts as refused. If it was
// neither refused nor overtaken, the manager lacks the right to record it.
func (v *view) answers(update string) map[string]snapshot.Preflight {
	answers := make(map[string]snapshot.Preflight, len(v.memory.preflights))
	for name, answer := range v.memory.preflights {
		answer.Retry = v.writes.Wait(attempt.Key{Verb: attempt.Preflighting, Object: name})
		answers[name] = answer
	}
	k := attempt.Key{Verb: backoff.CreatingRevision, Object: update}
	if f, refused := v.writes.Failure(k); refused && f.Message != "" {
		answers[update] = snapshot.Preflight{Refusal: f.Message, NoRights: !f.Refused && f.Seen == "", Retry: v.writes.Wait(k)}
	}
	return answers
}

// rememberPreflights notes the API server's answers to preflights. If the last pod was altered, a dry run that shows nothing wrong
// does not mean that the next one will not be.
func (v *view) rememberPreflights(answers map[string]snapshot.Preflight) {
	for name, answer := range answers {
		k := attempt.Key{Verb: attempt.Preflighting, Object: name}
		answer.Altered = answer.Altered || v.memory.preflights[name].Altered
		v.memory.preflights[name] = answer
		if answer.Pod == nil || answer.Altered { // refused, or not judged to the end
			v.writes.Note(k, backoff.Failure{Refused: !answer.Failed, Altered: answer.Altered})
		} else {
			v.writes.Succeeded(k)
		}
	}
}

// rememberMade notes that pods were made that are the set's.
func (v *view) rememberMade() {
	for name, answer := range v.memory.preflights {
		if answer.Altered && answer.Refusal == "" {
			answer.Altered = false
			v.memory.preflights[name] = answer
			v.writes.Succeeded(attempt.Key{Verb: attempt.Preflighting, Object: name})
		}
	}
}

// forgetPreflights forgets the answers for revisions that no longer exist. The update revision has no ControllerRevision if that
// was deleted after a newer API server had changed the template.
func (v *view) forgetPreflights(update string) {
	maps.DeleteFunc(v.memory.preflights, func(name string, _ snapshot.Preflight) bool {
		return name != update && !slices.ContainsFunc(v.Revisions, func(object *appsv1.ControllerRevision) bool { return object.Name == name })
	})
}
