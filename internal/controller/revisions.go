// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/model/action"
	"rollset.dev/rollset/internal/model/revision"
)

// maxCollisions is how many taken names are met in one reconcile; each of them costs a write and a read.
const maxCollisions = 10

// resolveRevisions finds the revisions of a set and writes down what is not recorded yet. It says whether anything was
// written; then the cache is behind.
func (r *Reconciler) resolveRevisions(ctx context.Context, v *view) (found revision.Resolution, wrote bool, err error) {
	in := v.revisionInput()
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
		taken, err := r.createRevision(ctx, v, found.Create)
		if err != nil || !taken {
			return found, err == nil, err
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
	err = r.bumpRevision(ctx, v, found.Bump)
	return err == nil, err
}

// revisionInput is what the revisions of a set are resolved from.
func (v *view) revisionInput() revision.Input {
	in := revision.Input{
		Set:       v.set,
		Revisions: v.revisions,
		Taken:     sets.New[string](),
		Used:      sets.New[string](),
		Decode:    v.memory.decode,
	}
	last := ""
	for i := range v.replicas {
		if r := &v.replicas[i]; r.Pod != nil && r.Revision != last { // most have the same
			in.Used.Insert(r.Revision)
			last = r.Revision
		}
	}
	return in
}

// createRevision records a revision; taken is true if its name belongs to an object that is not the set's. That is asked
// again only after a while: the pods may carry the name, and then the set goes on under it.
func (r *Reconciler) createRevision(ctx context.Context, v *view, wanted *appsv1.ControllerRevision) (taken bool, err error) {
	name := wanted.Name
	if v.memory.taken.wait(name, v.now) > 0 {
		return true, nil
	}
	if v.memory.recorded == name { // and somebody deleted it
		if err := r.checkStays(ctx, v.set); err != nil {
			return false, fmt.Errorf("create revision %s: %w", name, err)
		}
	}
	err = r.Client.Create(ctx, wanted)
	switch {
	case err == nil:
		v.memory.recorded = name
		r.Expectations.Wrote(v.set.UID, revisionKind(), wanted.ResourceVersion)
		logr.FromContextOrDiscard(ctx).Info("created revision", "revision", name, "number", wanted.Revision)
		return false, nil
	case !apierrors.IsAlreadyExists(err):
		return false, fmt.Errorf("create revision %s: %w", name, err)
	}
	existing := &appsv1.ControllerRevision{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: v.set.Namespace, Name: name}, existing); err != nil {
		return false, fmt.Errorf("get revision %s, whose name is taken: %w", name, err)
	}
	if !metav1.IsControlledBy(existing, v.set) {
		v.memory.taken.failed(name, v.now)
		return true, nil
	}
	r.Expectations.Wrote(v.set.UID, revisionKind(), existing.ResourceVersion)
	return false, nil
}

// bumpRevision writes the changed number or annotations of a revision. Only the newest set gives a revision up or takes that
// verdict back: an old one, in a cache that begins in the past, would see the revision that was made after it as one that was
// left again, and do once more what a user asked for long ago.
func (r *Reconciler) bumpRevision(ctx context.Context, v *view, wanted *appsv1.ControllerRevision) error {
	for _, seen := range v.revisions {
		if seen.UID != wanted.UID || v.memory.contested[seen.UID].left(seen, v.now) > 0 { // nothing is asked in vain
			continue
		}
		if _, rejected := seen.Annotations[revision.RejectedAnnotation]; rejected || revision.Judged(seen, wanted) {
			if newest, err := r.isNewest(ctx, v.set); err != nil || !newest {
				return err
			}
		}
		rest, err := r.patchRevision(ctx, v, seen, wanted)
		if err != nil {
			return fmt.Errorf("renumber revision %s: %w", seen.Name, err)
		}
		if rest == 0 {
			logr.FromContextOrDiscard(ctx).Info("renumbered revision", "revision", wanted.Name, "number", wanted.Revision)
			r.tellVerdict(v.set, seen, wanted)
		}
	}
	return nil
}

// checkUnproven asks the API server, once, whether the current revision was really never completed: a cache that begins in
// the past may not show the note, and pods that the partition keeps would be moved. It reports whether the cache is behind.
func (r *Reconciler) checkUnproven(ctx context.Context, v *view, name string) (behind bool, err error) {
	if v.memory.unproven == name {
		return false, nil
	}
	live := &appsv1.ControllerRevision{}
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: v.set.Namespace, Name: name}, live)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return false, fmt.Errorf("get revision %s, which was never completed: %w", name, err)
	case err == nil && metav1.IsControlledBy(live, v.set) && revision.WasCompleted(live):
		r.Expectations.Wrote(v.set.UID, revisionKind(), live.ResourceVersion)
		return true, nil
	}
	v.memory.unproven = name
	return false, nil
}

// patchRevision changes a revision, if it is still as it was seen. If it is not, it is left alone until the cache shows
// that, and rest is for how long at most.
func (r *Reconciler) patchRevision(ctx context.Context, v *view, seen, wanted *appsv1.ControllerRevision) (rest time.Duration, err error) {
	if rest = v.memory.contested[seen.UID].left(seen, v.now); rest > 0 {
		return rest, nil
	}
	switch err = r.Client.Patch(ctx, wanted, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})); {
	case err == nil:
		r.Expectations.Wrote(v.set.UID, revisionKind(), wanted.ResourceVersion)
		return 0, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return v.memory.contest(seen, v.now), nil
	default:
		return 0, err
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
	r.Expectations.Wrote(set.UID, setKind(), live.ResourceVersion)
	return false, nil
}

// pruneRevisions deletes the revisions that nobody needs any more, if they are still as they were seen: one that was given
// away is not the set's to delete. It wakes the plan for those that are not.
func (r *Reconciler) pruneRevisions(ctx context.Context, v *view, names []string, p *action.Plan) error {
	for _, object := range v.revisions {
		known := v.memory.decoded[object.UID]
		if !slices.Contains(names, object.Name) || known == nil || known.pruned {
			continue
		}
		if wait := v.memory.contested[object.UID].left(object, v.now); wait > 0 {
			p.Wake(wait)
			continue
		}
		target := &appsv1.ControllerRevision{}
		target.Name, target.Namespace = object.Name, object.Namespace
		err := r.Client.Delete(ctx, target, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
		if apierrors.IsConflict(err) { // it may still be there
			p.Wake(v.memory.contest(object, v.now))
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete revision %s: %w", object.Name, err)
		}
		known.pruned = true
		logr.FromContextOrDiscard(ctx).Info("deleted revision", "revision", object.Name)
	}
	return nil
}

// decoded is what a revision holds, so that it is decoded once and not at every reconcile.
type decoded struct {
	resourceVersion string
	template        *corev1.PodTemplateSpec
	claims          []string
	err             error
	// pruned is true once the revision was deleted, which the cache may not show yet.
	pruned bool
}

// decode decodes a revision unless it is remembered.
func (m *recollection) decode(object *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, []string, error) {
	known, ok := m.decoded[object.UID]
	if !ok || known.resourceVersion != object.ResourceVersion {
		known = &decoded{resourceVersion: object.ResourceVersion}
		known.template, known.claims, known.err = revision.Decode(object)
		m.decoded[object.UID] = known
	}
	return known.template, known.claims, known.err
}

// forgetRevisions drops what is remembered of revisions that no longer exist.
func (m *recollection) forgetRevisions(existing []*appsv1.ControllerRevision) {
	uids, names := sets.New[types.UID](), sets.New[string]()
	for _, object := range existing {
		uids.Insert(object.UID)
		names.Insert(object.Name)
	}
	maps.DeleteFunc(m.decoded, func(uid types.UID, _ *decoded) bool { return !uids.Has(uid) })
	maps.DeleteFunc(m.preflights, func(name string, _ *verdict) bool { return !names.Has(name) })
}
