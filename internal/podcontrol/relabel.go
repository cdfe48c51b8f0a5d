// Copyright The RollSet Authors
// SPDX-License-Identifier: Apache-2.0

package podcontrol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"rollset.dev/rollset/api/v1beta1"
	"rollset.dev/rollset/internal/model/action"
)

// errSetChanged means that a set must not own anything new, because it is being deleted or was replaced by another set of
// the same name.
var errSetChanged = errors.New("the set is being deleted, or was replaced by another of its name")

// CheckStays reads the set past the cache. A deleted set must not adopt pods that it left to others. Pods created for it
// would be garbage collected and created again until the cache shows the deletion.
func CheckStays(ctx context.Context, live client.Reader, set *v1beta1.RollSet) error {
	now := &v1beta1.RollSet{}
	if err := live.Get(ctx, client.ObjectKeyFromObject(set), now); err != nil {
		return fmt.Errorf("get the set: %w", err)
	}
	if now.UID != set.UID || now.DeletionTimestamp != nil {
		return errSetChanged
	}
	return nil
}

// ownerPatch returns a patch that sets the owners of a pod, if it still is as it was seen.
func ownerPatch(pod *corev1.Pod, owners []metav1.OwnerReference) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "ownerReferences": owners,
	}})
}

func withoutOwner(pod *corev1.Pod, owner types.UID) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(pod.OwnerReferences), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
}

// labelPatch returns a patch that labels a pod with the revision whose pods it equals, if it still is as it was judged.
func (w updater) labelPatch(a action.Relabel) ([]byte, error) {
	labels := map[string]string{v1beta1.RevisionLabel: a.Revision}
	if id := w.snap.IDOf(a.Pod.Name); w.snap.PodName(id) == a.Pod.Name {
		maps.Copy(labels, identityLabels(w.set, id))
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": a.Pod.UID, "resourceVersion": a.Pod.ResourceVersion, "labels": labels,
	}})
}
