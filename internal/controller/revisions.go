// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
	"rollset.dev/rollset/internal/podcontrol"
)

// maxCollisions is how many taken names are met in one reconcile; each of them costs a write and a read.
const maxCollisions = 10

// resolveRevisions finds the revisions of a set and writes down what is not recorded yet. It says whether anything was
// written; then the cache is behind.
func (r *Reconciler) resolveRevisions(ctx context.Context, v *view) (found revision.Resolution, wrote bool, err error) {
	in := v.RevisionInput(v.replicas, &v.memory.seen)
	for range maxCollisions {
		if found, err = revision.Resolve(in); err != nil {
			return found, false, err
		}
		if c := found.CollisionCount; c != nil && (v.memory.collisions == nil || *c > *v.memory.collisions) {
			v.memory.collisions = c
		}
		if found.Create == nil {
			break
		}
		name := found.Create.Name
		outcome, err := r.createRevision(ctx, v, found.Create)
		if err != nil || outcome == revisionMade {
			return found, err == nil, err
		}
		if outcome == revisionRefused { // the set lives on at the current one
			return found, false, nil
		}
		in.Taken.Insert(name)
	}
	wrote, err = r.settleRevisions(ctx, v, found)
	return found, wrote, err
}

// settleRevisions brings the revisions that exist up to date. It reports whether the cache is behind now.
func (r *Reconciler) settleRevisions(ctx context.Context, v *view, found revision.Resolution) (wrote bool, err error) {
	if found.Unproven {
		if behind, err := r.checkUnproven(ctx, v, found.Current.Name); behind || err != nil {
			return behind, err
		}
	}
	if found.Bump == nil {
		return false, nil
	}
	return r.bumpRevision(ctx, v, found.Bump)
}

// revisionOutcome is what became of a revision that was to be recorded.
type revisionOutcome int

const (
	// revisionMade means that it exists, and the cache may not show it yet.
	revisionMade revisionOutcome = iota
	// revisionTaken means that its name belongs to an object that is not the set's.
	revisionTaken
	// revisionRefused means that the API server will not have it.
	revisionRefused
)

// createRevision records a revision. What is in the way of it is asked about again only after a while: the pods may carry a
// name that is taken, and then the set goes on under it.
func (r *Reconciler) createRevision(ctx context.Context, v *view, wanted *appsv1.ControllerRevision) (revisionOutcome, error) {
	name := wanted.Name
	k := action.Key{Verb: recording, Object: name}
	v.chores = append(v.chores, k)
	if v.wait(k) > 0 {
		if f, _ := v.failure(k); f.Message != "" {
			return revisionRefused, nil
		}
		return revisionTaken, nil
	}
	if v.memory.recorded == name { // and somebody deleted it
		if err := podcontrol.CheckStays(ctx, r.Live, v.Set); err != nil {
			return revisionMade, fmt.Errorf("create revision %s: %w", name, err)
		}
	}
	err := r.Client.Create(ctx, wanted)
	switch {
	case err == nil:
		v.memory.recorded = name
		v.memory.attempts.Succeeded(k)
		r.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), wanted.ResourceVersion)
		logr.FromContextOrDiscard(ctx).Info("created revision", "revision", name, "number", wanted.Revision)
		return revisionMade, nil
	case (podcontrol.Refused(err) || apierrors.IsConflict(err)) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return v.unrecorded(k, fmt.Errorf("create revision %s: %w", name, err))
	case !apierrors.IsAlreadyExists(err):
		return revisionMade, fmt.Errorf("create revision %s: %w", name, err)
	}
	existing := &appsv1.ControllerRevision{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: v.Set.Namespace, Name: name}, existing); err != nil {
		return revisionMade, fmt.Errorf("get revision %s, whose name is taken: %w", name, err)
	}
	if !metav1.IsControlledBy(existing, v.Set) {
		v.memory.attempts.Failed(k, backoff.Failure{Version: v.version(k), Refused: true}, v.Now)
		return revisionTaken, nil
	}
	r.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), existing.ResourceVersion)
	return revisionMade, nil
}

// unrecorded notes that a revision may not be recorded. A conflict has to stay before it counts as a refusal.
func (v *view) unrecorded(k action.Key, err error) (revisionOutcome, error) {
	if !apierrors.IsConflict(err) {
		v.failed(k, err)
		return revisionRefused, nil
	}
	v.overtaken(k, v.Set.ResourceVersion, err)
	if f, _ := v.failure(k); f.Overtaken {
		return revisionMade, err
	}
	return revisionRefused, nil
}

// bumpRevision writes the changed number or annotations of a revision. Only the newest set gives a revision up or takes that
// verdict back: an old one, in a cache that begins in the past, would see the revision that was made after it as one that was
// left again, and do once more what a user asked for long ago. It reports whether the cache is behind.
func (r *Reconciler) bumpRevision(ctx context.Context, v *view, wanted *appsv1.ControllerRevision) (behind bool, err error) {
	for _, seen := range v.Revisions {
		if seen.UID != wanted.UID {
			continue
		}
		k := ofRevision(revising, seen)
		if v.chores = append(v.chores, k); v.wait(k) > 0 { // nothing is asked in vain
			continue
		}
		if _, rejected := seen.Annotations[revision.RejectedAnnotation]; rejected || revision.Judged(seen, wanted) {
			if newest, err := r.isNewest(ctx, v.Set); err != nil || !newest {
				return !newest, err
			}
		}
		if !r.patchRevision(ctx, v, seen, wanted) {
			continue
		}
		logr.FromContextOrDiscard(ctx).Info("renumbered revision", "revision", wanted.Name, "number", wanted.Revision)
		r.tellVerdict(v.Set, seen, wanted)
		behind = true
	}
	return behind, nil
}

// checkUnproven asks the API server, once, whether the current revision was really never completed: a cache that begins in
// the past may not show the note, and pods that the partition keeps would be moved. It reports whether the cache is behind.
func (r *Reconciler) checkUnproven(ctx context.Context, v *view, name string) (behind bool, err error) {
	if v.memory.unproven == name {
		return false, nil
	}
	live := &appsv1.ControllerRevision{}
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: v.Set.Namespace, Name: name}, live)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return false, fmt.Errorf("get revision %s, which was never completed: %w", name, err)
	case err == nil && metav1.IsControlledBy(live, v.Set) && revision.WasCompleted(live):
		r.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), live.ResourceVersion)
		return true, nil
	}
	v.memory.unproven = name
	return false, nil
}

// ofRevision is the key of a write to a revision that exists.
func ofRevision(verb action.Verb, object *appsv1.ControllerRevision) action.Key {
	return action.Key{Verb: verb, Object: string(object.UID)}
}

// patchRevision changes a revision, if it is still as it was seen. If it cannot be changed now, it is left alone for a while.
func (r *Reconciler) patchRevision(ctx context.Context, v *view, seen, wanted *appsv1.ControllerRevision) (done bool) {
	k := ofRevision(revising, seen)
	if v.wait(k) > 0 {
		return false
	}
	err := r.Client.Patch(ctx, wanted, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		v.memory.attempts.Succeeded(k)
		r.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), wanted.ResourceVersion)
		return true
	}
	v.leaveRevision(k, seen, fmt.Errorf("patch revision %s: %w", seen.Name, err))
	return false
}

// leaveRevision notes that a revision cannot be written now.
func (v *view) leaveRevision(k action.Key, seen *appsv1.ControllerRevision, err error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		v.overtaken(k, seen.ResourceVersion, err)
	} else {
		v.failed(k, err)
	}
}

// isNewest says whether the spec, and what users ask for beside it, is the newest, past the cache. If it is not, the cache is
// waited for.
func (r *Reconciler) isNewest(ctx context.Context, set *v1alpha1.RollSet) (bool, error) {
	live := &v1alpha1.RollSet{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(set), live); err != nil {
		return false, fmt.Errorf("get the set: %w", err)
	}
	if live.UID == set.UID && live.Generation == set.Generation && revision.Asked(live, set) {
		return true, nil
	}
	r.Expectations.Wrote(set.UID, informer.SetKind(), live.ResourceVersion)
	return false, nil
}

// pruneRevisions deletes the revisions that nobody needs any more, if they are still as they were seen: one that was given
// away is not the set's to delete.
func (r *Reconciler) pruneRevisions(ctx context.Context, v *view, names []string) {
	for _, object := range v.Revisions {
		if !slices.Contains(names, object.Name) || v.memory.pruned[object.UID] == object.ResourceVersion {
			continue
		}
		k := ofRevision(pruning, object)
		v.chores = append(v.chores, k)
		if v.wait(k) > 0 {
			continue
		}
		target := &appsv1.ControllerRevision{}
		target.Name, target.Namespace = object.Name, object.Namespace
		err := r.Client.Delete(ctx, target, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
		if err != nil && !apierrors.IsNotFound(err) { // it may still be there
			v.leaveRevision(k, object, fmt.Errorf("delete revision %s: %w", object.Name, err))
			continue
		}
		v.memory.pruned[object.UID] = object.ResourceVersion
		logr.FromContextOrDiscard(ctx).Info("deleted revision", "revision", object.Name)
	}
}

// forgetRevisions drops what is remembered of revisions that no longer exist.
func (m *recollection) forgetRevisions(existing []*appsv1.ControllerRevision) {
	uids, names := sets.New[types.UID](), sets.New[string]()
	for _, object := range existing {
		uids.Insert(object.UID)
		names.Insert(object.Name)
	}
	m.seen.Decoder.Keep(existing)
	maps.DeleteFunc(m.pruned, func(uid types.UID, _ string) bool { return !uids.Has(uid) })
	maps.DeleteFunc(m.preflights, func(name string, _ snapshot.Preflight) bool { return !names.Has(name) })
}
