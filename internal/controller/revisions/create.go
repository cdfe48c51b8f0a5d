// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/controller/backoff"
	"rollset.dev/rollset/internal/controller/informer"
	"rollset.dev/rollset/internal/model/attempt"
	"rollset.dev/rollset/internal/model/revision"
)

// outcome is the result of recording a revision.
type outcome int

const (
	// made means that it exists, and the cache may not show it yet.
	made outcome = iota
	// taken means that its name belongs to an object that is not the set's.
	taken
	// refused means that the API server refuses it.
	refused
)

// create records a revision. If its name is taken, the next attempt waits: pods may have that name already, and then the set continues
// with it.
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
	return c.meet(ctx, v, k)
}

// meet handles the object that has the name of a revision.
func (c *Control) meet(ctx context.Context, v *Look, k attempt.Key) (outcome, error) {
	name, existing := k.Object, &appsv1.ControllerRevision{}
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
func checkRecorded(set *v1beta1.RollSet, sent, answer *appsv1.ControllerRevision) error {
	switch {
	case !metav1.IsControlledBy(answer, set):
		return &attempt.AlteredError{What: "changed whom the object belongs to, so that it is none of the set's"}
	case !sameJSON(sent.Data.Raw, answer.Data.Raw):
		return &attempt.AlteredError{What: "changed its content"}
	default:
		return nil
	}
}

// sameJSON reports whether two JSON texts are equal, apart from the order of keys.
func sameJSON(a, b []byte) bool {
	var left, right any
	return bytes.Equal(a, b) || json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// adoptNext adopts the first revision that an earlier set left behind. It reports whether there was one.
func (c *Control) adoptNext(ctx context.Context, v *Look) (adopted bool, err error) {
	for i := range v.Orphans {
		if adopted, err := c.adopt(ctx, v, &v.Orphans[i]); adopted || err != nil {
			return adopted, err
		}
	}
	return false, nil
}

// adopt takes over a revision without a controller that an earlier set of the same name left behind, so that the history, the record of
// the completed revision, and the rollback survive an orphaning delete. The selector has to match its labels, and its content its name.
func (c *Control) adopt(ctx context.Context, v *Look, object *appsv1.ControllerRevision) (adopted bool, err error) {
	left := metav1.GetControllerOfNoCopy(object) == nil && object.DeletionTimestamp == nil &&
		strings.HasPrefix(object.Name, v.Set.Name+"-") && v.Selector.Matches(labels.Set(object.Labels))
	if !left || v.Writes.Wait(keyOf(backoff.AdoptingRevision, object)) > 0 {
		return false, nil
	}
	if _, _, err := revision.Decode(object); err != nil {
		return false, nil //nolint:nilerr // it belongs to another workload, such as a StatefulSet
	}
	if err := c.Stays(ctx, v.Set); err != nil {
		return false, fmt.Errorf("adopt revision %s: %w", object.Name, err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.UID, "resourceVersion": object.ResourceVersion,
		"ownerReferences": append(slices.Clone(object.OwnerReferences), *metav1.NewControllerRef(v.Set, v1beta1.GroupVersion.WithKind("RollSet"))),
	}})
	if err != nil {
		return false, fmt.Errorf("adopt revision %s: %w", object.Name, err)
	}
	wanted := object.DeepCopy()
	if err = c.Client.Patch(ctx, wanted, client.RawPatch(types.MergePatchType, patch)); err == nil {
		c.Expectations.Wrote(v.Set.UID, informer.RevisionKind(), wanted.ResourceVersion)
		err = attempt.CheckPatch(patch, object, wanted)
	}
	switch {
	case err == nil:
	case attempt.InTrouble(err): // it may have been created, so no other one is created in its place
		return false, fmt.Errorf("adopt revision %s: %w", object.Name, err)
	default:
		v.failed(keyOf(backoff.AdoptingRevision, object), object, fmt.Errorf("adopt revision %s: %w", object.Name, err))
		return false, nil
	}
	logr.FromContextOrDiscard(ctx).Info("adopted revision", "revision", object.Name, "number", object.Revision)
	return true, nil
}

// unrecorded notes that a revision may not be recorded. A conflict counts as a refusal only if it is repeated.
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
