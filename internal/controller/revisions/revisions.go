// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

// Package revisions is the only writer of ControllerRevisions.
//
// The rule: at most one revision is recorded or changed before the cache is waited for. What the API server refuses is left
// aside for a while, and the set lives on with the revisions that it has. What a user asked for is not done again, nor undone,
// on the word of an old cache. The suite of package controller and the scenarios of the simulator test it.
package revisions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1alpha1"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/expectations"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/revision"
	"rollset.dev/rollset/internal/model/snapshot"
)

// maxCollisions is how many taken names are met in one reconcile; each of them costs a write and a read.
const maxCollisions = 10

// Control writes the revisions of sets.
type Control struct {
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Stays returns an error unless the API server says that a set still exists and is not being deleted.
	Stays        func(ctx context.Context, set *v1alpha1.RollSet) error
	Expectations *expectations.Store
	Events       events.EventRecorder
}

// Memory is what is remembered of the revisions of a set. It may be lost at any time. The zero Memory is ready to use.
type Memory struct {
	// Collisions is how many names of revisions were found taken; status has it only after the next report.
	Collisions *int32
	// New is true if this process has made the first revision of the set.
	New bool
	// recorded is the name of the revision that was written last.
	recorded string
	// unproven is the revision that was never completed, as the API server confirmed.
	unproven string
	// pruned are the versions of revisions that were deleted, by their UIDs. The cache may still show them.
	pruned map[types.UID]string
}

// Look is what one reconcile knows of the revisions of a set.
type Look struct {
	*snapshot.Objects

	Writes *backoff.Writes
	Memory *Memory
	// Orphans are the revisions of the namespace without a controller.
	Orphans []appsv1.ControllerRevision
	// Due are the writes that are wanted, whether they are tried now or not.
	Due []attempt.Key
}

// Resolve finds the revisions of a set and records what is not recorded yet. It reports whether anything was written; then the
// cache is behind.
func (c *Control) Resolve(ctx context.Context, v *Look, in revision.Input) (found revision.Resolution, wrote bool, err error) {
	for i := range v.Orphans {
		if adopted, err := c.adopt(ctx, v, &v.Orphans[i]); adopted || err != nil {
			return found, adopted, err
		}
	}
	for range maxCollisions {
		if found, err = revision.Resolve(in); err != nil {
			return found, false, err
		}
		if n := found.CollisionCount; n != nil && (v.Memory.Collisions == nil || *n > *v.Memory.Collisions) {
			v.Memory.Collisions = n
		}
		if found.Create == nil { // the cache shows it, whatever came of an earlier attempt
			v.Writes.Succeeded(attempt.Key{Verb: backoff.CreatingRevision, Object: found.Update.Name})
			break
		}
		name := found.Create.Name
		became, err := c.create(ctx, v, found.Create)
		if err != nil || became == made {
			return found, err == nil, err
		}
		if became == refused { // the set lives on at the current one
			return found, false, nil
		}
		in.Taken.Insert(name)
	}
	wrote, err = c.settle(ctx, v, found)
	return found, wrote, err
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

// outcome is the result of recording a revision.
type outcome int

const (
	// made means that it exists, and the cache may not show it yet.
	made outcome = iota
	// taken means that its name belongs to an object that is not the set's.
	taken
	// refused means that the API server will not have it.
	refused
)

// create records a revision. What is in the way of it is asked about again only after a while: the pods may carry a
// name that is taken, and then the set goes on under it.
func (c *Control) create(ctx context.Context, v *Look, wanted *appsv1.ControllerRevision) (outcome, error) {
	name := wanted.Name
	k := attempt.Key{Verb: backoff.CreatingRevision, Object: name}
	v.Due = append(v.Due, k)
	if v.Writes.Wait(k) > 0 {
		if f, _ := v.Writes.Failure(k); f.Message != "" {
			return refused, nil
		}
		return taken, nil
	}
	if v.Memory.recorded == name { // and it was deleted
		if err := c.Stays(ctx, v.Set); err != nil {
			return made, fmt.Errorf("create revision %s: %w", name, err)
		}
	}
	sent := wanted.DeepCopy()
	err := c.Client.Create(ctx, wanted)
	if err == nil {
		c.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), wanted.ResourceVersion)
		err = checkRecorded(v.Set, sent, wanted)
	}
	switch {
	case err == nil:
		v.Memory.recorded, v.Memory.New = name, v.Memory.New || len(v.Revisions) == 0 && v.Set.Status.ObservedGeneration < 1
		v.Writes.Succeeded(k)
		logr.FromContextOrDiscard(ctx).Info("created revision", "revision", name, "number", wanted.Revision)
		return made, nil
	case (attempt.Refused(err) || attempt.LacksRights(err) || apierrors.IsConflict(err)) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return v.unrecorded(k, fmt.Errorf("create revision %s: %w", name, err))
	case !apierrors.IsAlreadyExists(err):
		return made, fmt.Errorf("create revision %s: %w", name, err)
	}
	existing := &appsv1.ControllerRevision{}
	if err := c.Live.Get(ctx, client.ObjectKey{Namespace: v.Set.Namespace, Name: name}, existing); err != nil {
		return made, fmt.Errorf("get revision %s, whose name is taken: %w", name, err)
	}
	if adopted, err := c.adopt(ctx, v, existing); adopted || err != nil { // the cache is behind
		return made, err
	}
	if !metav1.IsControlledBy(existing, v.Set) {
		v.Writes.Note(k, backoff.Failure{Refused: true})
		return taken, nil
	}
	c.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), existing.ResourceVersion)
	return made, nil
}

// checkRecorded compares a revision that was created with the answer of the API server. One that is not the set's, or has another
// content, is never used.
func checkRecorded(set *v1alpha1.RollSet, sent, answer *appsv1.ControllerRevision) error {
	switch {
	case !metav1.IsControlledBy(answer, set):
		return &attempt.AlteredError{What: "changed whom the object belongs to, so that it is none of the set's"}
	case !sameJSON(sent.Data.Raw, answer.Data.Raw):
		return &attempt.AlteredError{What: "changed its content"}
	default:
		return nil
	}
}

// sameJSON reports whether two texts mean the same, in whatever order their keys are.
func sameJSON(a, b []byte) bool {
	var left, right any
	return bytes.Equal(a, b) || json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// adopt takes over a revision without a controller that an earlier set of the same name left behind, so that history, the note of what
// was complete, and the way back survive an orphaning delete. The selector has to match its labels, and its content its name.
func (c *Control) adopt(ctx context.Context, v *Look, object *appsv1.ControllerRevision) (adopted bool, err error) {
	left := metav1.GetControllerOfNoCopy(object) == nil && object.DeletionTimestamp == nil &&
		strings.HasPrefix(object.Name, v.Set.Name+"-") && v.Selector.Matches(labels.Set(object.Labels))
	if !left || v.Writes.Wait(keyOf(backoff.AdoptingRevision, object)) > 0 {
		return false, nil
	}
	if _, _, err := revision.Decode(object); err != nil {
		return false, nil //nolint:nilerr // it is another workload's, such as a StatefulSet's
	}
	if err := c.Stays(ctx, v.Set); err != nil {
		return false, fmt.Errorf("adopt revision %s: %w", object.Name, err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.UID, "resourceVersion": object.ResourceVersion,
		"ownerReferences": append(slices.Clone(object.OwnerReferences), *metav1.NewControllerRef(v.Set, v1alpha1.GroupVersion.WithKind("RollSet"))),
	}})
	if err != nil {
		return false, fmt.Errorf("adopt revision %s: %w", object.Name, err)
	}
	wanted := object.DeepCopy()
	if err = c.Client.Patch(ctx, wanted, client.RawPatch(types.MergePatchType, patch)); err == nil {
		c.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), wanted.ResourceVersion)
		err = attempt.CheckPatch(patch, object, wanted)
	}
	if err != nil {
		v.leave(keyOf(backoff.AdoptingRevision, object), object, fmt.Errorf("adopt revision %s: %w", object.Name, err))
		return false, nil
	}
	logr.FromContextOrDiscard(ctx).Info("adopted revision", "revision", object.Name, "number", object.Revision)
	return true, nil
}

// unrecorded notes that a revision may not be recorded. A conflict has to stay before it counts as a refusal.
func (v *Look) unrecorded(k attempt.Key, err error) (outcome, error) {
	if !apierrors.IsConflict(err) {
		v.Writes.Failed(k, err)
		return refused, nil
	}
	v.Writes.Overtaken(k, v.Set.ResourceVersion, err)
	if f, _ := v.Writes.Failure(k); f.Overtaken {
		return made, err
	}
	return refused, nil
}

// bump writes the changed number or annotations of a revision. Only the newest set gives a revision up or takes that
// verdict back: an old one, in a cache that begins in the past, would see the revision that was made after it as one that was
// left again, and do once more what a user asked for long ago. It reports whether the cache is behind.
func (c *Control) bump(ctx context.Context, v *Look, wanted *appsv1.ControllerRevision) (behind bool, err error) {
	for _, seen := range v.Revisions {
		if seen.UID != wanted.UID {
			continue
		}
		k := keyOf(backoff.PatchingRevision, seen)
		if v.Due = append(v.Due, k); v.Writes.Wait(k) > 0 { // no request is sent during the wait
			continue
		}
		if _, rejected := seen.Annotations[revision.RejectedAnnotation]; rejected || revision.Judged(seen, wanted) {
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

// checkUnproven asks the API server, once, whether the current revision was really never completed: a cache that begins in
// the past may not show the note, and pods that the partition keeps would be moved. It reports whether the cache is behind.
func (c *Control) checkUnproven(ctx context.Context, v *Look, name string) (behind bool, err error) {
	if v.Memory.unproven == name {
		return false, nil
	}
	live := &appsv1.ControllerRevision{}
	err = c.Live.Get(ctx, client.ObjectKey{Namespace: v.Set.Namespace, Name: name}, live)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return false, fmt.Errorf("get revision %s, which was never completed: %w", name, err)
	case err == nil && metav1.IsControlledBy(live, v.Set) && revision.WasCompleted(live):
		c.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), live.ResourceVersion)
		return true, nil
	}
	v.Memory.unproven = name
	return false, nil
}

// keyOf is the key of a write to a revision that exists.
func keyOf(verb attempt.Verb, object *appsv1.ControllerRevision) attempt.Key {
	return attempt.Key{Verb: verb, Object: string(object.UID)}
}

// patch changes a revision, if it is still as it was seen. If it cannot be changed now, it is left alone for a while.
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
	v.leave(k, seen, fmt.Errorf("patch revision %s: %w", seen.Name, err))
	return false
}

// leave notes that a revision cannot be written now.
func (v *Look) leave(k attempt.Key, seen *appsv1.ControllerRevision, err error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		v.Writes.Overtaken(k, seen.ResourceVersion, err)
	} else {
		v.Writes.Failed(k, err)
	}
}

// isNewest reports whether the API server has the same spec and the same requests of users. If not, or if the set is gone, the cache
// is waited for.
func (c *Control) isNewest(ctx context.Context, set *v1alpha1.RollSet) (bool, error) {
	live := &v1alpha1.RollSet{}
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

// Prune deletes the revisions that are not needed, if they are still as they were seen: one that was given away is not the set's
// to delete.
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
			v.leave(k, object, fmt.Errorf("delete revision %s: %w", object.Name, err))
			continue
		}
		if v.Memory.pruned == nil {
			v.Memory.pruned = map[types.UID]string{}
		}
		v.Memory.pruned[object.UID] = object.ResourceVersion
		logr.FromContextOrDiscard(ctx).Info("deleted revision", "revision", object.Name)
	}
}

// Keep forgets all revisions but those that exist.
func (m *Memory) Keep(existing []*appsv1.ControllerRevision) {
	maps.DeleteFunc(m.pruned, func(uid types.UID, _ string) bool {
		return !slices.ContainsFunc(existing, func(object *appsv1.ControllerRevision) bool { return object.UID == uid })
	})
}
