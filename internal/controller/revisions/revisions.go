// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package revisions is the only writer of ControllerRevisions.
//
// The rule: after one revision was recorded or changed, nothing else is written until the cache shows it. Before a new revision takes
// effect, the proof of the one before it is written. A write that the API server refuses waits, and the set continues with the revisions
// that it has. An old cache does not cause a request of a user to be carried out twice, or taken back.
package revisions

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
)

// maxCollisions is how many taken names one reconcile tries; each of them costs a write and a read.
const maxCollisions = 10

// Control writes the revisions of sets.
type Control struct {
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Stays returns an error unless the set exists in the API server and is not being deleted.
	Stays func(ctx context.Context, set *v1beta1.RollSet) error
	// Behind reports whether the API server has newer pods of the set than the cache shows. It is called once for each template.
	Behind       func(ctx context.Context) (bool, error)
	Expectations *expectations.Store
	Events       events.EventRecorder
}

// Memory keeps facts about the revisions of a set between reconciles. It may be lost at any time. The zero Memory is ready to use.
type Memory struct {
	// Collisions is how many names of revisions were taken. The status has this number after the next report.
	Collisions *int32
	// New is true if this process has made the first revision of the set.
	New bool
	// recorded is the name of the revision that was written last.
	recorded string
	// unproven is the revision that was never proven, which the API server has confirmed.
	unproven string
	// proven is the revision whose proof was written last, or could not be, as it was then; nil if there is none.
	proven *appsv1.ControllerRevision
	// pruned are the versions of revisions that were deleted, by their UIDs. The cache may still show them.
	pruned map[types.UID]string
}

// unwritten returns the name of the revision whose proof may not have been written; empty if there is none. A revision that was made or
// numbered anew since then is another one.
func (m *Memory) unwritten(all []*appsv1.ControllerRevision) string {
	for _, seen := range all {
		if m.proven != nil && seen.UID == m.proven.UID && seen.Revision == m.proven.Revision {
			return seen.Name
		}
	}
	return ""
}

// Look holds the revisions of a set during one reconcile.
type Look struct {
	*snapshot.Objects

	Writes *backoff.Writes
	Memory *Memory
	// Orphans are the revisions of the namespace without a controller.
	Orphans []appsv1.ControllerRevision
	// Due lists the writes that are wanted, also those that wait.
	Due []attempt.Key
}

// Resolve finds the revisions of a set and records those that are missing. It reports whether it wrote something, so that the cache is
// behind.
func (c *Control) Resolve(ctx context.Context, v *Look, in revision.Input) (found revision.Resolution, wrote bool, err error) {
	if adopted, err := c.adoptNext(ctx, v); adopted || err != nil {
		return found, adopted, err
	}
	in.Unwritten = v.Memory.unwritten(v.Revisions)
	for range maxCollisions {
		if found, err = revision.Resolve(in); err != nil {
			return found, false, err
		}
		v.Memory.collided(found.CollisionCount)
		if behind, err := c.judgeOnceMore(ctx, v, found); behind || err != nil {
			return found, behind, err
		}
		name := found.Update.Name
		if found.Create == nil {
			if !in.Taken.Has(name) { // the cache shows it, even if an earlier attempt failed
				v.Writes.Succeeded(attempt.Key{Verb: backoff.CreatingRevision, Object: name})
			}
			break
		}
		switch became, err := c.create(ctx, v, found.Create); {
		case err != nil, became == made:
			return found, err == nil, err
		case became == refused: // the set continues at the current one
			return found, false, nil
		}
		in.Taken.Insert(name)
	}
	wrote, err = c.settle(ctx, v, found)
	return found, wrote, err
}

// judgeOnceMore records that the revision before the update revision is proven. If that depends on pods whose newest state the cache
// may not show, it reports that the cache is behind. A proof that cannot be written delays nothing: the status names the
// revision, and the proof is written later.
func (c *Control) judgeOnceMore(ctx context.Context, v *Look, found revision.Resolution) (behind bool, err error) {
	if found.Proof == nil {
		if !found.Near {
			return false, nil
		}
		return c.Behind(ctx)
	}
	for _, seen := range v.Revisions {
		if seen.UID == found.Proof.UID {
			v.Due, v.Memory.proven = append(v.Due, keyOf(backoff.PatchingRevision, seen)), seen
			return c.patch(ctx, v, seen, found.Proof), nil
		}
	}
	return false, nil
}

// settle brings the revisions that exist up to date. It reports whether the cache is behind now.
func (c *Control) settle(ctx context.Context, v *Look, found revision.Resolution) (wrote bool, err error) {
	if found.Unproven {
		if behind, err := c.checkUnproven(ctx, v, found.Current.Name); behind || err != nil {
			return behind, err
		}
	}
	if found.Bump == nil {
		return false, nil
	}
	return c.bump(ctx, v, found.Bump)
}

// bump writes the changed number or annotations of a revision. It reports whether the cache is behind. A revision takes effect again, is
// rejected, or its rejection is taken back, only if the cache shows the newest version of the set. With an old version, the controller
// would mistake a newer revision for one that a user has abandoned, and repeat an old request of that user.
func (c *Control) bump(ctx context.Context, v *Look, wanted *appsv1.ControllerRevision) (behind bool, err error) {
	for _, seen := range v.Revisions {
		if seen.UID != wanted.UID {
			continue
		}
		k := keyOf(backoff.PatchingRevision, seen)
		if v.Due = append(v.Due, k); v.Writes.Wait(k) > 0 { // no request is sent during the wait
			continue
		}
		_, rejected := seen.Annotations[revision.RejectedAnnotation]
		if rejected || seen.Revision != wanted.Revision || revision.Judged(seen, wanted) {
			if newest, err := c.isNewest(ctx, v.Set); err != nil || !newest {
				return !newest, err
			}
		}
		if !c.patch(ctx, v, seen, wanted) {
			continue
		}
		logr.FromContextOrDiscard(ctx).Info("renumbered revision", "revision", wanted.Name, "number", wanted.Revision)
		c.tellVerdict(v.Set, seen, wanted)
		behind = true
	}
	return behind, nil
}

// checkUnproven asks the API server, once, whether the current revision was never proven. An old cache may not show the annotation, and
// then pods that the partition keeps would be moved. It reports whether the cache is behind.
func (c *Control) checkUnproven(ctx context.Context, v *Look, name string) (behind bool, err error) {
	if v.Memory.unproven == name {
		return false, nil
	}
	live := &appsv1.ControllerRevision{}
	err = c.Live.Get(ctx, client.ObjectKey{Namespace: v.Set.Namespace, Name: name}, live)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return false, fmt.Errorf("get revision %s, which was never proven: %w", name, err)
	case err == nil && metav1.IsControlledBy(live, v.Set) && revision.WasProven(live):
		c.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), live.ResourceVersion)
		return true, nil
	}
	v.Memory.unproven = name
	return false, nil
}

// keyOf returns the key of a write to a revision that exists.
func keyOf(verb attempt.Verb, object *appsv1.ControllerRevision) attempt.Key {
	return attempt.Key{Verb: verb, Object: string(object.UID)}
}

// patch changes a revision if it has not changed since it was read. If the write fails, the next attempt waits.
func (c *Control) patch(ctx context.Context, v *Look, seen, wanted *appsv1.ControllerRevision) (done bool) {
	k := keyOf(backoff.PatchingRevision, seen)
	if v.Writes.Wait(k) > 0 {
		return false
	}
	patch := client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})
	data, err := patch.Data(wanted)
	if err == nil {
		err = c.Client.Patch(ctx, wanted, patch)
	}
	if err == nil {
		c.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), wanted.ResourceVersion)
		err = attempt.CheckPatch(data, seen, wanted)
	}
	if err == nil {
		v.Writes.Succeeded(k)
		return true
	}
	v.failed(k, seen, fmt.Errorf("patch revision %s: %w", seen.Name, err))
	return false
}

// failed notes that a write to a revision failed.
func (v *Look) failed(k attempt.Key, seen *appsv1.ControllerRevision, err error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		v.Writes.Overtaken(k, seen.ResourceVersion, err)
	} else {
		v.Writes.Failed(k, err)
	}
}

// isNewest reports whether the API server has the same spec and the same requests of users. If not, or if the set is deleted, the
// reconcile waits for the cache.
func (c *Control) isNewest(ctx context.Context, set *v1beta1.RollSet) (bool, error) {
	live := &v1beta1.RollSet{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(set), live); err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("get the set: %w", err)
	}
	if live.UID != set.UID { // no version of the cache can be waited for
		return false, nil
	}
	if live.Generation == set.Generation && revision.Asked(live, set) {
		return true, nil
	}
	c.Expectations.Wrote(set.UID, informer.SetKind(), live.ResourceVersion)
	return false, nil
}

// Prune deletes the revisions that are not needed, if they have not changed since they were read: one that has another owner now is
// not deleted.
func (c *Control) Prune(ctx context.Context, v *Look, names []string) {
	for _, object := range v.Revisions {
		if !slices.Contains(names, object.Name) || v.Memory.pruned[object.UID] == object.ResourceVersion {
			continue
		}
		k := keyOf(backoff.DeletingRevision, object)
		v.Due = append(v.Due, k)
		if v.Writes.Wait(k) > 0 {
			continue
		}
		target := &appsv1.ControllerRevision{}
		target.Name, target.Namespace = object.Name, object.Namespace
		err := c.Client.Delete(ctx, target, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
		if err != nil && !apierrors.IsNotFound(err) { // it may still be there
			v.failed(k, object, fmt.Errorf("delete revision %s: %w", object.Name, err))
			continue
		}
		if v.Memory.pruned == nil {
			v.Memory.pruned = map[types.UID]string{}
		}
		v.Memory.pruned[object.UID] = object.ResourceVersion
		logr.FromContextOrDiscard(ctx).Info("deleted revision", "revision", object.Name)
	}
}

// collided remembers how many names were taken.
func (m *Memory) collided(n *int32) {
	if n != nil && (m.Collisions == nil || *n > *m.Collisions) {
		m.Collisions = n
	}
}

// Keep forgets all revisions but those that exist.
func (m *Memory) Keep(existing []*appsv1.ControllerRevision) {
	maps.DeleteFunc(m.pruned, func(uid types.UID, _ string) bool {
		return !slices.ContainsFunc(existing, func(object *appsv1.ControllerRevision) bool { return object.UID == uid })
	})
}
